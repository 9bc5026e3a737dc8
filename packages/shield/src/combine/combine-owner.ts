import type { HotKey } from '../cache/hot-key.ts'

/** Holds increments until they are sent. */
export interface WaitingCounter {
  readonly hot: HotKey
  /** Sends what is waiting. */
  flush(): void
  /** Sends what one owner has waiting, each increment separately. */
  flushAlone(owner: CombineOwner): void
}

/**
 * The sender whose commands are carried out in order: a client of the proxy, or a connection of an application.
 *
 * *Order.* A waiting increment must not be overtaken by what its owner sends next, so it is sent first. And one that is
 * in flight as part of a larger command may have to be resent by itself, if Redis refuses the sum: commands on the same
 * key have to wait until that is known (see `settle`; an application's connection cannot make its commands wait, and
 * there only a caller that did not await the increment could notice).
 */
export class CombineOwner {
  /** The one counter in which this owner has increments waiting. */
  waiting: WaitingCounter | undefined
  /** Increments in flight as parts of larger commands, and their key; undefined if there are several. */
  #merged = 0
  #mergedHot: HotKey | undefined

  /** True while something that was combined, or may be, is unanswered. */
  get isOpen(): boolean {
    return this.waiting !== undefined || this.#merged > 0
  }

  /** One of its increments is sent as part of a larger command. */
  merge(hot: HotKey): void {
    this.#mergedHot = this.#merged === 0 || this.#mergedHot === hot ? hot : undefined
    this.#merged++
  }

  /** It is answered. */
  unmerge(): void {
    if (--this.#merged === 0) this.#mergedHot = undefined
  }

  /**
   * Another command is about to be sent, which touches this key or no hot one; `isForAny` if it may touch any. False if
   * it should wait until everything before it is answered.
   */
  settle(hot: HotKey | undefined, isForAny = false): boolean {
    const { waiting } = this
    const isBehindMerged = this.#merged > 0 && (isForAny || this.#mergedHot === undefined || this.#mergedHot === hot)
    if (waiting === undefined) return !isBehindMerged
    // The waiting ones were sent after those in flight.
    if (isBehindMerged || (this.#merged > 0 && this.#mergedHot === waiting.hot)) return false
    if (isForAny || waiting.hot === hot) waiting.flushAlone(this)
    else waiting.flush()
    return true
  }
}
