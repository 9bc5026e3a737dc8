/**
 * The phase of a client. Phases exclude each other:
 *
 * | phase                                      | the client                | its requests                                  |
 * | ------------------------------------------ | ------------------------- | --------------------------------------------- |
 * | `open`                                     | sends and reads           | are taken                                     |
 * | `ended`                                    | sends no more             | those it has sent are taken                   |
 * | `lost`                                     | is gone                   | those it had sent are taken, as Redis does    |
 * | `leaving`, `leaving ended`, `leaving lost` | as in the three above     | no more are taken; it closes when all is answered |
 * | `closed`                                   | is gone                   | nothing is owed any more                      |
 */
export type ClientPhase = 'open' | 'ended' | 'lost' | 'leaving' | 'leaving ended' | 'leaving lost' | 'closed'

/**
 * What keeps the next request from being taken, as bits because several may apply at once: replies have to come first,
 * something holds the client, it has not read its replies, or it has the maximum number of requests in flight.
 */
export const holds = { replies: 1, holder: 2, reader: 4, crowd: 8 } as const
type Hold = (typeof holds)[keyof typeof holds]

/** The state of a client's requests: whether one may be taken, now or ever. */
export class ClientFlow {
  #phase: ClientPhase = 'open'
  #holds = 0

  /** True while input waits. */
  get isBlocked(): boolean {
    return this.#holds !== 0
  }

  isBlockedBy(hold: Hold): boolean {
    return (this.#holds & hold) !== 0
  }

  block(hold: Hold): void {
    this.#holds |= hold
  }

  unblock(hold: Hold): void {
    this.#holds &= ~hold
  }

  /** True if no further request is taken. */
  get isLeaving(): boolean {
    return this.#phase !== 'open' && this.#phase !== 'ended' && this.#phase !== 'lost'
  }

  get isClosed(): boolean {
    return this.#phase === 'closed'
  }

  /** True if the client sends no more. */
  get hasEnded(): boolean {
    return this.#phase !== 'open' && this.#phase !== 'leaving'
  }

  get isLost(): boolean {
    return this.#phase === 'lost' || this.#phase === 'leaving lost'
  }

  /** The client sends no more. */
  end(): void {
    if (this.#phase === 'open') this.#phase = 'ended'
    else if (this.#phase === 'leaving') this.#phase = 'leaving ended'
  }

  /** Its connection broke while it had requests waiting. */
  lose(): void {
    this.#phase = 'lost'
  }

  /** Takes no further requests. */
  leave(): void {
    if (this.#phase === 'open') this.#phase = 'leaving'
    else if (this.#phase === 'ended') this.#phase = 'leaving ended'
    else if (this.#phase === 'lost') this.#phase = 'leaving lost'
  }

  close(): void {
    this.#phase = 'closed'
  }
}
