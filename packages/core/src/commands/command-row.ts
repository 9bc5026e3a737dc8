import type { KeySpec } from './key-spec.ts'
import type { NameTable } from './name-table.ts'

/** What a command does with a key, or with the data as a whole: COMMAND's flags `readonly`, `write`, or neither. */
export type KeyAccess = 'read' | 'write'

/** The type of value that a command works on. `generic` takes any; `none` means no key. */
export type CommandType =
  | 'string'
  | 'bitmap'
  | 'hyperloglog'
  | 'hash'
  | 'list'
  | 'set'
  | 'zset'
  | 'geo'
  | 'stream'
  | 'vectorset'
  | 'json'
  | 'timeseries'
  | 'probabilistic'
  | 'search'
  | 'generic'
  | 'none'

/**
 * More about a command: `blocking` may wait for data; `pubsub`, `admin`, `transaction`, `connection`, `scripting` are
 * its area; `random` returns something different each time; `time` depends on the clock; `cursor` is a step of an
 * iteration; `movable` has keys whose position depends on other arguments; `sharded` has shard channels, which belong
 * to a slot as keys do; `container` only has subcommands; `keyless` touches keys without naming them.
 */
export type CommandFlag =
  | 'blocking'
  | 'pubsub'
  | 'admin'
  | 'transaction'
  | 'connection'
  | 'scripting'
  | 'random'
  | 'time'
  | 'cursor'
  | 'movable'
  | 'sharded'
  | 'container'
  | 'keyless'

/** A command or subcommand in the table. */
export interface CommandRow {
  /** In capitals, such as `GET` or `OBJECT ENCODING`. */
  readonly name: string
  /**
   * Number of arguments as Redis counts them: including the name and subcommand, negative for "at least". Newer servers
   * may take more (ZRANK's WITHSCORE came with 7.2), so this is no reason to refuse a command.
   */
  readonly arity: number
  readonly type: CommandType
  /** What it does to the data; `none` for commands about the server, the connection, or scripts. */
  readonly access: KeyAccess | 'none'
  readonly keys: readonly KeySpec[]
  /** The index of the first key if it is fixed, otherwise 0. */
  readonly firstKey: number
  /** True if the command can have only one key. */
  readonly hasSingleKey: boolean
  /**
   * True if the reply depends only on one key's value and the arguments, and so may be cached until that key changes.
   * For a command that takes several keys, this holds only when it is given one: see `isCacheable`.
   */
  readonly cacheable: boolean
  readonly flags: ReadonlySet<CommandFlag>
  /**
   * The first version that has it, if later than Redis 7.0, such as `7.4` or `valkey 9.0`; `module` for module
   * commands.
   */
  readonly since: string | undefined
  /** The subcommands by name, if any. */
  readonly subcommands: NameTable<CommandRow> | undefined
}
