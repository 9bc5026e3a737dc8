import type { TimerHandle } from '@firebreak/core'
import type { Answer } from '../answer.ts'

/** A call that waits for its turn. */
export interface WaitingCall {
  readonly cost: number
  /** By the steady clock. */
  readonly deadline: number
  resolve(answer: Answer): void
  reject(error: unknown): void
  before: WaitingCall | undefined
  after: WaitingCall | undefined
  isInLine: boolean
  /** For one that was admitted and leaves later: takes it out, and says when the place that became free ends. */
  giveUpPlace: (() => number | undefined) | undefined
}

/**
 * The calls waiting for one key, oldest first: a doubly linked list, so that a call can leave from anywhere at once and
 * at the same cost however long the queue is.
 */
export class CallLine {
  head: WaitingCall | undefined
  /** The cost of all in line. */
  units = 0
  /** When the first in line will be admitted, as far as the limit has said. */
  turnAt: number | undefined
  /** Sleeps until then. */
  timer: TimerHandle | undefined
  /** The limit is being asked for the first in line. */
  isAsking = false
  /** Those behind the first were looked at since the line had to wait. */
  isSwept = false
  #tail: WaitingCall | undefined

  push(waiter: WaitingCall): void {
    waiter.before = this.#tail
    waiter.isInLine = true
    if (this.#tail === undefined) this.head = waiter
    else this.#tail.after = waiter
    this.#tail = waiter
    this.units += waiter.cost
  }

  remove(waiter: WaitingCall): void {
    if (!waiter.isInLine) return
    waiter.isInLine = false
    this.units -= waiter.cost
    if (waiter.before === undefined) this.head = waiter.after
    else waiter.before.after = waiter.after
    if (waiter.after === undefined) this.#tail = waiter.before
    else waiter.after.before = waiter.before
    waiter.before = undefined
    waiter.after = undefined
  }

  /** Nothing is known of the first in line any more. */
  wake(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.turnAt = undefined
  }
}
