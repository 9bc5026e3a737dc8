import type { CommandArgs, CommandRow } from '@firebreak/core/commands'
import type { CachedReply } from '../cache/cached-reply.ts'
import type { HotKey } from '../cache/hot-key.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import type { CombinePart } from '../combine/combine-part.ts'
import type { CounterCommand } from '../combine/counter-command.ts'
import type { KeyLimitedError } from '../errors.ts'

/** The outcome of a request held by a limit: it was admitted, or is refused with this error. */
export type LimitTurn = 'paid' | KeyLimitedError

/**
 * Gets the reply of a load; undefined if the command must go to Redis after all: then call `answered` once it is
 * answered or lost, before the application learns of the answer.
 */
export type LoadedReader = (reply: CachedReply | undefined, answered: () => void) => void

/**
 * A command as an adapter decoded it. Adapters use one object for all commands, so nothing of it may be kept after the
 * call.
 */
export interface GateRequest {
  readonly row: CommandRow
  readonly args: CommandArgs
  /** The key at an argument, if it is hot; counts the access unless the request comes back from being held. */
  visit(index: number, isWrite: boolean): HotKey | undefined
  /** The text of an argument. */
  textAt(index: number): string
  /** A copy of an argument. */
  bytesAt(index: number): Uint8Array
  /** Makes the receiver of the answer if the command is merged with others. */
  partOf(command: CounterCommand): CombinePart
  /** The command as a read that can be sent later. */
  readOf(hot: HotKey, keyIndex: number): ReadCommand
  /** Makes the receiver of a load's reply. */
  whenLoaded(): LoadedReader
  /** False if only Redis may answer it. */
  readonly isAnswerable: boolean
  /** True if the client library sends it to open the connection, as its configured user. */
  readonly isHandshake: boolean
  /** False if others wait behind it, as in a pipeline. */
  readonly canWait: boolean
  /** Aborted when nobody is waiting for the answer any more. */
  readonly signal: AbortSignal | undefined
  /** Set if the request comes back from being held. */
  readonly turn: LimitTurn | undefined
}
