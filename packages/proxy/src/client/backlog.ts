import type { Outlet } from '../transport/outlet.ts'
import type { ReplySlots } from './reply-slots.ts'

/** The bounds that hold for what a client leaves unread. */
export interface BacklogHost {
  readonly turn: { readonly nowMs: number }
  readonly maxOutputBytes: number
  readonly slowReaderMs: number
  /** True while all clients together leave too much unread. */
  readonly isFull: boolean
}

// How much further behind a reader may be before those who share a connection with it have to wait along.
const sharedFactor = 8
// What a client may leave unread even while all together leave too much.
const fairBytes = 64 * 1024
const heavyBytes = 1024 * 1024
const heavyMs = 10_000

/** What a client was answered and has not read, and who waits until it has. */
export class Backlog {
  readonly #host: BacklogHost
  readonly #outlet: Outlet
  readonly #slots: ReplySlots
  readonly #onSlowReader: () => void
  /** Of replies that are put together from several and not whole yet. */
  heldBytes = 0
  #waiting: (() => void)[] = []
  #timer: NodeJS.Timeout | undefined
  #isClosed = false
  #replyBytes = 0
  #heavyUntilMs = 0

  constructor(host: BacklogHost, outlet: Outlet, slots: ReplySlots, onSlowReader: () => void) {
    this.#host = host
    this.#outlet = outlet
    this.#slots = slots
    this.#onSlowReader = onSlowReader
  }

  get bytes(): number {
    return this.#outlet.queuedBytes + this.#slots.waitingBytes + this.heldBytes
  }

  /** So far behind that even a connection which others share has to wait. */
  get isStalled(): boolean {
    return this.#isAbove(this.#host.maxOutputBytes * sharedFactor)
  }

  /** So far behind that the client's own connection to Redis and its own requests have to wait. */
  get isBehind(): boolean {
    return this.#isAbove(this.#host.maxOutputBytes)
  }

  /** True for a while after a large reply: such a client gets a connection of its own, for it may be slow to read. */
  get isHeavy(): boolean {
    return this.#heavyUntilMs > this.#host.turn.nowMs
  }

  #isAbove(bound: number): boolean {
    if (this.#isClosed) return false
    const most = this.#host.isFull ? Math.min(bound, fairBytes) : bound
    if (this.bytes <= most) return false
    // What only waits for the end of the event is no backlog.
    this.#outlet.flush()
    return this.bytes > most
  }

  /** Counts a piece of a reply. One whole piece is nearly every reply, and never large. */
  weigh(bytes: number, isLast: boolean): void {
    if (isLast && this.#replyBytes === 0) return
    this.#replyBytes += bytes
    if (this.#replyBytes > heavyBytes) this.#heavyUntilMs = this.#host.turn.nowMs + heavyMs
    if (isLast) this.#replyBytes = 0
  }

  whenCaughtUp(callback: () => void): void {
    if (this.isBehind) this.#waiting.push(callback)
    else callback()
  }

  /** As `whenCaughtUp`, while others wait: a reader that never reads is told on. */
  whenUnstalled(callback: () => void): void {
    this.whenCaughtUp(callback)
    if (!this.#isClosed) this.#timer ??= setTimeout(this.#onSlowReader, this.#host.slowReaderMs)
  }

  /** The client has read: those who wait go on, unless it is still behind. */
  drained(): boolean {
    if (this.isBehind) return false
    clearTimeout(this.#timer)
    this.#timer = undefined
    const callbacks = this.#waiting
    this.#waiting = []
    for (const callback of callbacks) callback()
    return true
  }

  /** The client is gone: nobody waits for it any more. */
  close(): void {
    this.#isClosed = true
    this.drained()
  }
}
