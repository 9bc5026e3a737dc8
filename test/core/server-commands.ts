import type { Connection } from './connection.ts'
import { plain } from './connection.ts'
import type { ArgumentDoc } from './example-arguments.ts'

/** What a server reports for one of its commands. */
export interface CommandInfo {
  /** Subcommands as `object|encoding`. */
  readonly name: string
  readonly arity: number
  readonly flags: readonly string[]
  readonly range: readonly [first: number, last: number, step: number]
  readonly categories: readonly string[]
  readonly hasShardChannels: boolean
  readonly isContainer: boolean
  readonly arguments: readonly ArgumentDoc[]
}

interface Doc {
  readonly arguments?: readonly ArgumentDoc[]
  readonly subcommands?: Record<string, Doc>
}

/** All commands and subcommands of a server, by COMMAND and COMMAND DOCS. */
export async function serverCommands(connection: Connection): Promise<CommandInfo[]> {
  const docs = new Map<string, readonly ArgumentDoc[]>()
  const readDocs = (all: Record<string, Doc>): void => {
    for (const [name, doc] of Object.entries(all)) {
      docs.set(name, doc.arguments ?? [])
      if (doc.subcommands !== undefined) readDocs(doc.subcommands)
    }
  }
  readDocs(plain(await connection.call('COMMAND', 'DOCS')) as Record<string, Doc>)
  const infos: CommandInfo[] = []
  const read = (raw: unknown): void => {
    const [name, arity, flags, first, last, step, categories, , specs, subcommands] = raw as [
      string,
      number,
      string[],
      number,
      number,
      number,
      string[],
      string[],
      { flags: string[] }[],
      unknown[],
    ]
    infos.push({
      name,
      arity,
      flags,
      range: [first, last, step],
      categories,
      hasShardChannels: specs.some((spec) => spec.flags.includes('not_key')),
      // COMMAND has subcommands and is also a command itself.
      isContainer: subcommands.length > 0 && name !== 'command',
      arguments: docs.get(name) ?? [],
    })
    for (const subcommand of subcommands) read(subcommand)
  }
  for (const raw of plain(await connection.call('COMMAND')) as unknown[]) read(raw)
  return infos
}
