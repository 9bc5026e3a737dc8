import type { KeySpec } from './key-spec.ts'
import type { NameTable } from './name-table.ts'

/** What a command does with a key, or with the data as a whole: for COMMAND's flags `readonly`, `write` and neither. */
export type KeyAccess = 'read' | 'write'

/** The kind of value that a command works on. `generic` takes any; `none` works on no key. */
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
 * More about a command:
 * `blocking` may wait for data; `pubsub`, `admin`, `transaction`, `connection`, `scripting`: its area; `random` gives
 * something else each time; `time` depends on the clock; `cursor` is a step of an iteration; `movable` has keys whose
 * place depends on other arguments; `sharded` has shard channels, which belong to a slot as a key does; `container`
 * only has subcommands; `keyless` touches keys without naming them.
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

/** A command or subcommand as the table knows it. */
export interface CommandRow {
  /** In capitals, as `GET` or `OBJECT ENCODING`. */
  readonly name: string
  /**
   * How many arguments it takes, as Redis counts: the name and the subcommand included, negative for "at least". Newer
   * servers may take more (ZRANK's WITHSCORE came with 7.2): no ground to refuse a command.
   */
  readonly arity: number
  readonly type: CommandType
  /** What it does to the data; `none` for commands about the server, the connection, and scripts. */
  readonly access: KeyAccess | 'none'
  readonly keys: readonly KeySpec[]
  /** The index of the first key where it is always the same, else 0. */
  readonly firstKey: number
  /** True where the first key is the only one there can be. */
  readonly hasSingleKey: boolean
  /**
   * True where the reply is a function of the value of one key and the arguments, and so may be kept until that key
   * changes. Of a command with many keys it holds only while it is given one: see `isCacheable`.
   */
  readonly cacheable: boolean
  readonly flags: ReadonlySet<CommandFlag>
  /** The first version that has it, where that is later than Redis 7.0, as `7.4` or `valkey 9.0`; `module` for those. */
  readonly since: string | undefined
  /** The subcommands by name, where there are any. */
  readonly subcommands: NameTable<CommandRow> | undefined
}
