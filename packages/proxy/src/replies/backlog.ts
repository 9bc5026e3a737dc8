import type { Runtime, TimerHandle } from '@firebreak/core'
import type { Outlet } from '../transport/outlet.ts'
import type { ReplySlots } from './reply-slots.ts'

/** The bounds on a client's unread output. */
export interface BacklogHost {
  readonly turn: { readonly nowMs: number }
  readonly runtime: Runtime
  readonly maxOutputBytes: number
  readonly slowReaderMs: number
  /** Requests that one client may have in flight. */
  readonly maxInFlight: number
  /** True while all clients together leave too much unread. */
  readonly isFull: boolean
}

// How much further a reader may fall behind before the others on its shared connection have to wait too.
const sharedFactor = 8
// What a client may have unread even while all together have too much.
const fairBytes = 64 * 1024
const heavyBytes = 1024 * 1024
const heavyMs = 10_000
// How many requests a client may have in flight before the size of its answers is known; also the minimum.
const firstWindow = 1024
const strangerWindow = 256
const leastWindow = 16
const windowMs = 1000
/** For no particular slot: everything unread counts. */
const anySlot = Number.POSITIVE_INFINITY

/** What a client was sent and has not read, and who waits until it has. */
export class Backlog {
  readonly #host: BacklogHost
  readonly #outlet: Outlet
  readonly #slots: ReplySlots
  readonly #onSlowReader: () => void
  /** Incomplete parts of joined replies. */
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
  /** The same for a client that has not authenticated. */
  isStranger = false

  constructor(host: BacklogHost, outlet: Outlet, slots: ReplySlots, onSlowReader: () => void) {
    this.#host = host
    this.#outlet = outlet
    this.#slots = slots
    this.#onSlowReader = onSlowReader
  }

  get bytes(): number {
    return this.#outlet.queuedBytes + this.#slots.waitingBytes + this.heldBytes
  }

  /** So far behind that even a shared connection must wait before delivering the reply to a slot. */
  isStalledAt(slot: number): boolean {
    return this.#isAbove(this.#host.maxOutputBytes * sharedFactor, slot)
  }

  /** Like `isBehind`, for the reply to a slot. */
  isBehindAt(slot: number): boolean {
    return this.#isAbove(this.#host.maxOutputBytes, slot)
  }

  /** So far behind that the client's own connection to Redis and its own requests have to wait. */
  get isBehind(): boolean {
    return this.#isAbove(this.#host.maxOutputBytes, anySlot)
  }

  /**
   * True for a while after a large reply: such a client gets a dedicated connection, because it may be slow to read.
   */
  get isHeavy(): boolean {
    return this.#heavyUntilMs > this.#host.turn.nowMs
  }

  #isAbove(bound: number, slot: number): boolean {
    if (this.#isClosed) return false
    const most = this.#host.isFull ? Math.min(bound, fairBytes) : bound
    if (this.#bytesBefore(slot) <= most) return false
    // Output that only waits for the end of the event is not backlog.
    this.#outlet.flush()
    return this.#bytesBefore(slot) > most
  }

  /** What the reply to a slot has to wait for: everything before its turn, not what comes after. */
  #bytesBefore(slot: number): number {
    return slot <= this.#slots.head ? this.#outlet.queuedBytes : this.bytes
  }

  /** Counts a piece of a reply. Nearly every reply is one complete piece, and never large. */
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
   * Requests that may be in flight now: if all answers were as large as the largest recent one, they would fit in what
   * the client may have unread, and no other client on the connection has to wait until it reads.
   */
  get window(): number {
    return Math.min(this.#window, this.isStranger ? strangerWindow : this.#host.maxInFlight)
  }

  /** Nothing was in flight, or what is known is outdated: measure the size of answers again. */
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

  /** Like `whenCaughtUp`, when others are waiting: a reader that never reads is reported. */
  whenUnstalled(callback: () => void, slot: number): void {
    this.whenCaughtUp(callback, slot)
    if (this.#isClosed) return
    this.#timer ??= this.#host.runtime.timers.setTimeout(this.#onSlowReader, this.#host.slowReaderMs)
  }

  /** Nothing else will show that the client is alive: one that reads nothing for that long is reported. */
  expectReading(): void {
    let before = 0
    this.#lastLook ??= this.#host.runtime.timers.setInterval(() => {
      const { queuedBytes } = this.#outlet
      if (queuedBytes > 0 && queuedBytes === before) this.#onSlowReader()
      before = queuedBytes
    }, this.#host.slowReaderMs)
  }

  /**
   * The client has read: those that wait continue unless it is still too far behind for them. False if it is too far
   * behind for new requests.
   */
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
