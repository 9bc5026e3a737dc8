import type { Clock } from '@firebreak/core'

/**
 * What is known of Redis' clock, measured against this process' steady one: a client's wall clock is never compared.
 *
 * The offset is taken from the moment a call was sent, so it is at most the way there too large: good for "not after".
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

  /** The server's time at an instant of the steady clock; without any reply yet, the wall clock's guess. */
  at(steadyMs: number): number {
    return this.#offset === undefined ? Math.floor(this.#wallClock.now()) : Math.floor(steadyMs + this.#offset)
  }

  /** The server's time after which a call sent now may not run any more; '' where nothing is known yet. */
  latest(sentAt: number, validForMs: number): number | '' {
    return this.#offset === undefined ? '' : Math.ceil(sentAt + this.#offset + validForMs)
  }
}
