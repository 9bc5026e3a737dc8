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
  /** For a call that was admitted and leaves later: removes it, and returns when the freed place ends. */
  giveUpPlace: (() => number | undefined) | undefined
}

/**
 * The calls waiting for one key, oldest first: a doubly linked list, so that a call can leave from anywhere in constant
 * time.
 */
export class CallLine {
  head: WaitingCall | undefined
  /** The total cost of all waiting calls. */
  units = 0
  /** When the first in line will be admitted, as far as the limit has told. */
  turnAt: number | undefined
  /** Sleeps until then. */
  timer: TimerHandle | undefined
  /** The limit is being queried for the first in line. */
  isAsking = false
  /** True once those behind the first have been checked since the line had to wait. */
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

  /** Nothing is known about the first in line any more. */
  wake(): void {
    this.timer?.cancel()
    this.timer = undefined
    this.turnAt = undefined
  }
}
