import type { Clock } from '@firebreak/core'

/** How long Redis' last word is believed: as long as other changes of users may go unnoticed. */
const believedMs = 5000

/** Whether Redis answers clients that have shown no password, by what it last said. */
export class StrangerAccess {
  readonly #clock: Clock
  #saidAt = Number.NEGATIVE_INFINITY
  /** False until Redis has answered one. */
  areLetIn = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** True while Redis need not be asked again. */
  get isFresh(): boolean {
    return this.areLetIn && this.#clock.now() - this.#saidAt < believedMs
  }

  learn(areLetIn: boolean): void {
    this.areLetIn = areLetIn
    this.#saidAt = this.#clock.now()
  }
}
