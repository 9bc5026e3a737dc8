import type { CombineOwner } from './combine-owner.ts'
import type { CounterCommand } from './counter-command.ts'

/** The outcome of a command. */
export type CombineOutcome =
  /** Redis carried it out, and the counter now has this value. */
  | { readonly kind: 'value'; readonly value: number | bigint }
  /** Redis answered with an error: nothing was done. */
  | { readonly kind: 'refused' }
  /** It is not known whether it was carried out. */
  | { readonly kind: 'lost'; readonly reason: unknown }

export type CombineListener = (outcome: CombineOutcome) => void

/** One caller's increment, as the adapter that it came through made it. */
export interface CombinePart {
  /** The sender whose command order it belongs to. */
  readonly owner: CombineOwner
  readonly command: CounterCommand
  /** Answers it with Redis' reply as if it had been sent alone. */
  answer(reply: Buffer): void
  /** The command that it was part of was lost, for this reason. */
  fail(reason: unknown): void
  /** Sends it by itself; its caller gets Redis' answer, after `listener` is notified. */
  sendAlone(words: readonly (string | Uint8Array)[], listener: CombineListener): void
}

/** How merged commands reach Redis: over one connection, in the order in which they are sent. */
export interface CombineWay {
  send(
    words: readonly [string, ...(string | Uint8Array)[]],
    parts: readonly CombinePart[],
    listener: CombineListener,
  ): void
  /** Calls back when the current work is done. */
  defer(callback: () => void): void
}
