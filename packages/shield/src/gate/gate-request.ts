import type { CommandArgs, CommandRow } from '@firebreak/core/commands'
import type { HotKey } from '../cache/hot-key.ts'
import type { LoadedHandler } from '../cache/load.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import type { KeyLimitedError } from '../errors.ts'

/** What became of a request that a limit held: it is paid for, or refused with this error. */
export type LimitTurn = 'paid' | KeyLimitedError

/**
 * A command as an adapter decoded it. Adapters use one object for all commands, so nothing of it may be kept beyond the
 * call that it was given to.
 */
export interface GateRequest {
  readonly row: CommandRow
  readonly args: CommandArgs
  /** The key at an argument where it is hot; counts the access, unless the request was held and comes again. */
  visit(index: number, isWrite: boolean): HotKey | undefined
  /** The text of an argument. */
  textAt(index: number): string
  /** The command as a read that can be sent later. */
  readOf(hot: HotKey, keyIndex: number): ReadCommand
  /** Makes what gets the reply of a load; undefined where the command has to go to Redis after all. */
  whenLoaded(): LoadedHandler
  /** False where only Redis may answer it. */
  readonly isAnswerable: boolean
  /** True where the client library sends it to open the connection, as the user that it was configured with. */
  readonly isHandshake: boolean
  /** False where others wait behind it, as in a pipeline. */
  readonly canWait: boolean
  /** Aborted when nobody waits for the answer any more. */
  readonly signal: AbortSignal | undefined
  /** Set where the request was held and comes again. */
  readonly turn: LimitTurn | undefined
}
