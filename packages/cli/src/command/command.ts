import { FirebreakError } from '@firebreak/core'

/** Where a command reads and writes; tests pass their own. */
export interface CommandIo {
  readonly env: Readonly<Record<string, string | undefined>>
  readonly stdin: NodeJS.ReadStream
  readonly stdout: NodeJS.WritableStream & { isTTY?: boolean; columns?: number; rows?: number }
  readonly stderr: NodeJS.WritableStream & { isTTY?: boolean }
  /**
   * Ends at Ctrl-C or SIGTERM: a command that has asked for it then prints what it has and returns; any other is stopped
   * where it is. One that starts something asks for it first.
   */
  readonly signal: AbortSignal
}

/** One word of the `firebreak` command, in the list of all. */
export interface CommandEntry {
  readonly name: string
  /** One line for the list. */
  readonly summary: string
  /** The command itself, loaded only when it is run or its help is shown, so that a command starts at once. */
  readonly load: () => Promise<Command>
}

/** A command's description and action. */
export interface Command {
  /** The whole help text: examples first, then every flag with its env twin and default. */
  readonly help: string
  /** Subcommands, for help and completion. */
  readonly subcommands?: readonly string[]
  /** Long flags without the dashes, for completion. */
  readonly flags?: readonly string[]
  /** Moves the cursor and colours text itself, and sanitises all foreign text that it writes. @default false */
  readonly drawsScreen?: boolean
  /** Ctrl-C and SIGTERM do not end it halfway; a second one does. @default false */
  readonly finishes?: boolean
  /**
   * Runs with the words after the command's name; returns the exit code: 0 done, 1 failed, 2 wrong usage, 3 `--fail-on`
   * or `--diff`.
   */
  run(args: readonly string[], io: CommandIo): Promise<number>
}

/** A command with its place in the list. */
export type ListedCommand = CommandEntry & Command

/** Loads every command: for the manual and for completion. */
export function loadAll(entries: readonly CommandEntry[]): Promise<ListedCommand[]> {
  return Promise.all(entries.map(async (entry) => ({ ...entry, ...(await entry.load()) })))
}

/** The command line was wrong: printed with a pointer to the help, exit code 2. */
export class UsageError extends FirebreakError {
  constructor(message: string, options?: ErrorOptions) {
    super('FB_USAGE', message, options)
  }
}
