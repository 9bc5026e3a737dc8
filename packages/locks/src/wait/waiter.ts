import type { TimerHandle, Timers } from '@firebreak/core'
import type { Hold, HoldRequest } from '../lease/hold.ts'

/** Why a waiter's pause ended. */
export type WakeReason = 'look' | 'handed' | 'gave-up'

/**
 * One waiting task: asleep until it is woken to try, is handed the lock, or gives up. A notification that arrives while
 * it is trying is kept for the next pause, so none is lost.
 */
export class Waiter {
  readonly request: HoldRequest
  /** The lock that another task of this process handed over. */
  handed: Hold | undefined
  #isBeingHanded = false
  #hasGivenUp = false
  #mustLook = false
  #wake: ((reason: WakeReason) => void) | undefined
  #timer: TimerHandle | undefined
  readonly #timers: Timers

  constructor(request: HoldRequest, timers: Timers) {
    this.request = request
    this.#timers = timers
  }

  get owner(): string {
    return this.request.owner
  }

  get canBeHanded(): boolean {
    return this.#wake !== undefined && !this.#isBeingHanded
  }

  get hasGivenUp(): boolean {
    return this.#hasGivenUp
  }

  /** Sleeps until woken, at most `ms`. */
  pause(ms: number): Promise<WakeReason> {
    if (this.#hasGivenUp) return Promise.resolve('gave-up')
    if (this.handed !== undefined) return Promise.resolve('handed')
    if (this.#mustLook) {
      this.#mustLook = false
      return Promise.resolve('look')
    }
    return new Promise((resolve) => {
      this.#wake = resolve
      this.lookWithin(ms)
    })
  }

  look(): void {
    if (this.#wake === undefined || this.#isBeingHanded) this.#mustLook = true
    else this.#end('look')
  }

  /** Checks after `ms` unless woken before. */
  lookWithin(ms: number): void {
    if (this.#wake === undefined || ms === Number.POSITIVE_INFINITY) return
    this.#timer?.cancel()
    // Redis ends a lease in the millisecond after the one it names.
    this.#timer = this.#timers.setTimeout(() => this.look(), Math.ceil(ms) + 1)
  }

  /** Another task starts to hand the lock over: until that is decided, this one must not ask Redis for it. */
  expectHand(): void {
    this.#isBeingHanded = true
  }

  /** The hand-over failed. */
  missHand(): void {
    this.#isBeingHanded = false
    this.look()
  }

  hand(hold: Hold): void {
    this.handed = hold
    this.#end('handed')
  }

  giveUp(): void {
    this.#hasGivenUp = true
    this.#end('gave-up')
  }

  #end(reason: WakeReason): void {
    this.#timer?.cancel()
    this.#timer = undefined
    const wake = this.#wake
    this.#wake = undefined
    wake?.(reason)
  }
}
