import type { CommandArgs } from './command-args.ts'
import { makeTable } from './command-group.ts'
import type { CommandRow } from './command-row.ts'
import { collectionCommands } from './table/collections.ts'
import { keyspaceCommands } from './table/keyspace.ts'
import { moduleCommands } from './table/modules.ts'
import { newerCommands } from './table/newer.ts'
import { serverCommands } from './table/server.ts'
import { sortedSetCommands } from './table/sorted-sets.ts'
import { streamCommands } from './table/streams.ts'
import { stringCommands } from './table/strings.ts'

/** Every known command by name; containers hold their subcommands. */
const table = /* @__PURE__ */ makeTable([
  ...stringCommands,
  ...collectionCommands,
  ...sortedSetCommands,
  ...streamCommands,
  ...keyspaceCommands,
  ...serverCommands,
  ...newerCommands,
  ...moduleCommands,
])

/**
 * The row of a command by its name, in any case. For a container (OBJECT, CLUSTER, …) it is the subcommand's row, or
 * undefined if there is no subcommand of that name; without a subcommand it is the container's own row, which has no
 * keys.
 */
export function commandOf(
  name: string | Uint8Array,
  subcommand?: string | number | Uint8Array,
): CommandRow | undefined {
  const row = table.of(name)
  if (row?.subcommands === undefined || subcommand === undefined) return row
  return row.subcommands.of(subcommand)
}

/** Like `commandOf`, for names in a buffer; -1 means no subcommand. */
export function commandOfBytes(
  bytes: Uint8Array,
  start: number,
  end: number,
  subcommandStart = -1,
  subcommandEnd = -1,
): CommandRow | undefined {
  const row = table.ofBytes(bytes, start, end)
  if (row?.subcommands === undefined || subcommandStart < 0) return row
  return row.subcommands.ofBytes(bytes, subcommandStart, subcommandEnd)
}

/** Like `commandOf`, for a whole command. */
export function commandOfArgs(args: CommandArgs): CommandRow | undefined {
  const row = args.length > 0 ? args.find(0, table) : undefined
  if (row?.subcommands === undefined || args.length < 2) return row
  return args.find(1, row.subcommands)
}

/** Every row, containers before their subcommands. */
export function allCommands(): CommandRow[] {
  return table.values().flatMap((row) => [row, ...(row.subcommands?.values() ?? [])])
}
