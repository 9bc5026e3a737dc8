import type { Clock } from '@firebreak/core'

/**
 * What is known about Redis' clock, relative to this process' steady one: a client's wall clock is never compared.
 *
 * The offset is computed from the moment a call was sent, so it is too large by at most the one-way transit time: safe
 * for "not after".
 */
export class ServerTime {
  readonly #wallClock: Clock
  #offset: number | undefined

  constructor(wallClock: Clock) {
    this.#wallClock = wallClock
  }

  get isKnown(): boolean {
    return this.#offset !== undefined
  }

  /** A call sent at `sentAt` was carried out at the server's time `serverNowMs`. */
  learn(sentAt: number, serverNowMs: number): void {
    this.#offset = serverNowMs - sentAt
  }

  /** The server's time at an instant of the steady clock; before the first reply, a guess by the wall clock. */
  at(steadyMs: number): number {
    return this.#offset === undefined ? Math.floor(this.#wallClock.now()) : Math.floor(steadyMs + this.#offset)
  }

  /** The server's time after which a call sent now must not run any more; '' if nothing is known yet. */
  latest(sentAt: number, validForMs: number): number | '' {
    return this.#offset === undefined ? '' : Math.ceil(sentAt + this.#offset + validForMs)
  }
}
