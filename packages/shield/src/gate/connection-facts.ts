import type { HotKey } from '../cache/hot-key.ts'
import type { CombineOwner } from '../combine/combine-owner.ts'
import type { Combining } from '../combine/combining.ts'
import type { KeySpace } from './key-space.ts'
import type { OpenState } from './open-state.ts'

/** What the gate needs to know about the connection that a command is about to use. */
export interface ConnectionFacts {
  /** The keys that it sees with its user; undefined while unknown. */
  readonly space: KeySpace | undefined
  /** True while a command sent now would go out at once. */
  readonly isReady: boolean
  /** True if the connection is dedicated to the sender and carries everything: only counted and guarded. */
  readonly isPinned: boolean
  /** What was begun on it and has not ended. */
  readonly open: OpenState
  /** The shield's time. */
  now(): number
  /** True if something sent earlier may have changed the key without naming it. */
  isBehind?(hot: HotKey): boolean
  /** A script is sent, which may write keys that it does not name. */
  sendsScript?(): void
  /** The owner of these commands; undefined if none of them was combined yet. */
  readonly owner?: CombineOwner | undefined
  /** Where increments of a key are combined; connections without one send each separately. */
  combining?(hot: HotKey): Combining
  /** The caller, for per-caller limits; connections that do not know have none. */
  caller?(): string
  /** The connection is about to select a database; the result is called if that succeeds. */
  select(database: number): () => void
}
