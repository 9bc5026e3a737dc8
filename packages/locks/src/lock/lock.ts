import { LeasedLock, type LeasedLockParts } from './leased-lock.ts'
import type { ReentrantProtocol } from './reentrant-protocol.ts'

/** The reentrant lock; a Java service with Redisson's lock of the same name excludes it and is excluded. */
export class Lock extends LeasedLock {
  readonly #protocol: ReentrantProtocol

  constructor(parts: LeasedLockParts & { readonly protocol: ReentrantProtocol }) {
    super(parts)
    this.#protocol = parts.protocol
  }

  /** True while anybody holds it. */
  async isLocked(): Promise<boolean> {
    return (await this.engine.redis.send(['EXISTS', this.protocol.leaseKey])) === 1
  }

  /** What is left of the lease of whoever holds it; 0 when free. */
  async remainingMs(): Promise<number> {
    const answer = Number(await this.engine.redis.send(['PTTL', this.protocol.leaseKey]))
    if (answer === -1) return Number.POSITIVE_INFINITY
    return Math.max(0, answer)
  }

  /** Frees it whoever holds it: for people who know better. The holder learns of it at its next renewal or unlock. */
  forceUnlock(): Promise<boolean> {
    return this.#protocol.forceRelease()
  }
}
