import type { HotKey } from '../cache/hot-key.ts'
import type { KeySpace } from './key-space.ts'
import type { OpenState } from './open-state.ts'

/** All that the gate has to know of the connection that a command is about to take. */
export interface ConnectionFacts {
  /** The keys that it sees, as the user that it is; undefined while that is not known. */
  readonly space: KeySpace | undefined
  /** True while a command sent now would go out at once. */
  readonly isReady: boolean
  /** True where the connection is the sender's alone and everything goes over it: only counted and guarded. */
  readonly isPinned: boolean
  /** What was begun on it and has not ended. */
  readonly open: OpenState
  /** The shield's time. */
  now(): number
  /** True where something sent before may have changed the key, and nobody saw which key it changes. */
  isBehind?(hot: HotKey): boolean
  /** A script goes out, which may write keys that it does not name. */
  sendsScript?(): void
  /** From now on it sees the keys of this database. */
  select(database: number): void
}
