import type { Runtime, TimerHandle } from '@firebreak/core'
import type { Outlet } from '../transport/outlet.ts'
import type { ReplySlots } from './reply-slots.ts'

/** The bounds that hold for what a client leaves unread. */
export interface BacklogHost {
  readonly turn: { readonly nowMs: number }
  readonly runtime: Runtime
  readonly maxOutputBytes: number
  readonly slowReaderMs: number
  /** Requests of one client that may be on their way. */
  readonly maxInFlight: number
  /** True while all clients together leave too much unread. */
  readonly isFull: boolean
}

// How much further behind a reader may be before those who share a connection with it have to wait along.
const sharedFactor = 8
// What a client may leave unread even while all together leave too much.
const fairBytes = 64 * 1024
const heavyBytes = 1024 * 1024
const heavyMs = 10_000
// How many requests a client may have on their way before it is known how much their answers bring, and at least.
const firstWindow = 1024
const leastWindow = 16
const windowMs = 1000
/** Of no slot: all that is unread counts. */
const anySlot = Number.POSITIVE_INFINITY

/** What a client was answered and has not read, and who waits until it has. */
export class Backlog {
  readonly #host: BacklogHost
  readonly #outlet: Outlet
  readonly #slots: ReplySlots
  readonly #onSlowReader: () => void
  /** Of replies that are put together from several and not whole yet. */
  heldBytes = 0
  #waiting: { readonly callback: () => void; readonly slot: number }[] = []
  #timer: TimerHandle | undefined
  #lastLook: TimerHandle | undefined
  #isClosed = false
  #replyBytes = 0
  #heavyUntilMs = 0
  #largestBytes = 0
  #windowUntilMs = 0
  #window: number = firstWindow

  constructor(host: BacklogHost, outlet: Outlet, slots: ReplySlots, onSlowReader: () => void) {
    this.#host = host
    this.#outlet = outlet
    this.#slots = slots
    this.#onSlowReader = onSlowReader
  }

  get bytes(): number {
    return this.#outlet.queuedBytes + this.#slots.waitingBytes + this.heldBytes
  }

  /** So far behind that even a connection which others share has to wait with the reply to a slot. */
  isStalledAt(slot: number): boolean {
    return this.#isAbove(this.#host.maxOutputBytes * sharedFactor, slot)
  }

  /** As `isBehind`, for the reply to a slot. */
  isBehindAt(slot: number): boolean {
    return this.#isAbove(this.#host.maxOutputBytes, slot)
  }

  /** So far behind that the client's own connection to Redis and its own requests have to wait. */
  get isBehind(): boolean {
    return this.#isAbove(this.#host.maxOutputBytes, anySlot)
  }

  /** True for a while after a large reply: such a client gets a connection of its own, for it may be slow to read. */
  get isHeavy(): boolean {
    return this.#heavyUntilMs > this.#host.turn.nowMs
  }

  #isAbove(bound: number, slot: number): boolean {
    if (this.#isClosed) return false
    const most = this.#host.isFull ? Math.min(bound, fairBytes) : bound
    if (this.#bytesBefore(slot) <= most) return false
    // What only waits for the end of the event is no backlog.
    this.#outlet.flush()
    return this.#bytesBefore(slot) > most
  }

  /** What the reply to a slot has to wait for: where it is its turn, not for what waits behind it. */
  #bytesBefore(slot: number): number {
    return slot <= this.#slots.head ? this.#outlet.queuedBytes : this.bytes
  }

  /** Counts a piece of a reply. One whole piece is nearly every reply, and never large. */
  weigh(bytes: number, isLast: boolean): void {
    if (isLast && this.#replyBytes === 0) {
      if (bytes > this.#largestBytes) this.#fitWindow(bytes)
      return
    }
    this.#replyBytes += bytes
    if (this.#replyBytes > this.#largestBytes) this.#fitWindow(this.#replyBytes)
    if (this.#replyBytes > heavyBytes) this.#heavyUntilMs = this.#host.turn.nowMs + heavyMs
    if (isLast) this.#replyBytes = 0
  }

  /**
   * Requests that may be on their way now: were all answers as large as the largest of late, they would fit into what a
   * client may leave unread, and none of those who share a connection with it has to wait until it reads.
   */
  get window(): number {
    return Math.min(this.#window, this.#host.maxInFlight)
  }

  /** Nothing was on its way, or all that is known of it is old: what answers bring is measured again. */
  renewWindow(): void {
    const { nowMs } = this.#host.turn
    if (this.#slots.owed > 0 && nowMs < this.#windowUntilMs) return
    this.#windowUntilMs = nowMs + windowMs
    this.#largestBytes = 0
    this.#window = firstWindow
  }

  #fitWindow(bytes: number): void {
    this.#largestBytes = bytes
    this.#window = Math.max(leastWindow, Math.floor(this.#host.maxOutputBytes / bytes))
  }

  whenCaughtUp(callback: () => void, slot: number = anySlot): void {
    if (!this.isBehindAt(slot)) {
      callback()
      return
    }
    this.#waiting.push({ callback, slot })
    if (slot !== anySlot) this.#slots.whenTurn(slot, () => this.drained())
  }

  /** As `whenCaughtUp`, while others wait: a reader that never reads is reported. */
  whenUnstalled(callback: () => void, slot: number): void {
    this.whenCaughtUp(callback, slot)
    if (this.#isClosed) return
    this.#timer ??= this.#host.runtime.timers.setTimeout(this.#onSlowReader, this.#host.slowReaderMs)
  }

  /** Nothing more comes from the client that would tell that it is there: one that reads nothing for that long is reported. */
  expectReading(): void {
    let before = 0
    this.#lastLook ??= this.#host.runtime.timers.setInterval(() => {
      const { queuedBytes } = this.#outlet
      if (queuedBytes > 0 && queuedBytes === before) this.#onSlowReader()
      before = queuedBytes
    }, this.#host.slowReaderMs)
  }

  /** The client has read: those who wait go on, unless it is still behind for them. False where it is for new requests. */
  drained(): boolean {
    const waiting = this.#waiting
    this.#waiting = []
    for (const one of waiting) {
      if (this.isBehindAt(one.slot)) this.#waiting.push(one)
      else one.callback()
    }
    if (this.isBehind) return false
    this.#timer?.cancel()
    this.#timer = undefined
    return true
  }

  /** The client is gone: nobody waits for it any more. */
  close(): void {
    this.#isClosed = true
    this.#lastLook?.cancel()
    this.drained()
  }
}
