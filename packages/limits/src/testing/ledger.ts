import type { Chance, SimulatedProcess } from '@firebreak/testkit'
import { LimitUnavailableError } from '../errors.ts'
import type { RedisLimiter } from '../redis/redis-limiter.ts'
import { fixedWindow } from '../spec/specs.ts'
import { BrokenLaw } from './broken-law.ts'

/** A limit that is never reached and whose window does not end: all that was ever charged can be read from it. */
export class Ledger {
  static readonly key = 'ledger'
  static readonly spec = fixedWindow({ limit: 1_000_000, windowMs: 86_400_000, anchor: 'firstHit' })
  #charged = 0
  /** Charges without a reply: each was made once, or not at all. */
  #unsure = 0
  #refunded = 0
  /** Refunds that were begun and of which nobody heard the end. */
  #unsureRefunds = 0
  readonly #isLossy: boolean

  constructor(isLossy: boolean) {
    this.#isLossy = isLossy
  }

  /** Two calls of one turn, which are sent as one. */
  async charge(limiter: RedisLimiter, chance: Chance): Promise<void> {
    const cost = 1 + chance.below(3)
    await Promise.all([this.#chargeOnce(limiter, cost), this.#chargeOnce(limiter, cost)])
  }

  async #chargeOnce(limiter: RedisLimiter, cost: number): Promise<void> {
    this.#unsure += cost
    const { source, allowed } = await limiter.take(Ledger.key, cost)
    if (source !== 'redis') return
    if (!allowed) throw new BrokenLaw('the ledger is full')
    this.#unsure -= cost
    this.#charged += cost
  }

  /** Gives something back, and asks again under the same name until it is told what became of it; now and then once more. */
  async refund(limiter: RedisLimiter, process: SimulatedProcess): Promise<void> {
    if (this.#charged < 100) return
    const id = process.runtime.newId()
    this.#unsureRefunds++
    for (let isDone = false; !isDone || process.chance.happens(0.3); ) {
      try {
        const isFirst = await limiter.refund(Ledger.key, 1, id)
        // A mark that Redis has lost is not known to it.
        if (isDone && isFirst && !this.#isLossy) throw new BrokenLaw(`the refund ${id} was made twice`)
        if (isDone) continue
        isDone = true
        this.#unsureRefunds--
        this.#refunded++
      } catch (error) {
        if (!(error instanceof LimitUnavailableError)) throw error
        await process.sleep(30)
      }
    }
  }

  check(used: number): void {
    const most = this.#charged + this.#unsure - this.#refunded
    const least = this.#charged - this.#refunded - this.#unsureRefunds
    if (used >= least && used <= most) return
    throw new BrokenLaw(`${used} are charged, and it must be ${least} to ${most}`)
  }
}
