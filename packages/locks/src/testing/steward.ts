import type { RedisClient } from '@firebreak/redis'
import { type SimulatedProcess, SimulatedRedis, type VirtualNetwork } from '@firebreak/testkit'
import { Locks } from '../locks.ts'
import type { Semaphore } from '../semaphore/semaphore.ts'
import { BrokenLaw } from './broken-law.ts'

const permits = 2
const hands = 4

/**
 * Continually adds, removes and drains permits, over a client that resends unanswered requests.
 *
 * Laws: a change counts once, or not at all where it was not acknowledged; permits that are taken are not drained.
 */
export class Steward {
  readonly #process: SimulatedProcess
  readonly #counted: Semaphore
  readonly #drained: Semaphore
  readonly #losses: () => number
  /** Minimum and maximum number of permits: after a missing answer the exact number is unknown. */
  #least = permits
  #most = permits
  #isOver = false

  /** @param losses how often Redis has lost writes, or had its clock set */
  constructor(process: SimulatedProcess, network: VirtualNetwork, losses: () => number) {
    this.#process = process
    this.#losses = losses
    const client = new SimulatedRedis(process, network, 'redis:6379', { commandTimeoutMs: 700, resends: true })
    const locks = new Locks(client as unknown as RedisClient, {
      leaseMs: 900,
      tokenMemoryMs: 60_000,
      runtime: process.runtime,
    })
    this.#counted = locks.getSemaphore('counted', permits)
    this.#drained = locks.getSemaphore('drained', permits)
  }

  begin(): void {
    const { chance } = this.#process
    this.#process.start(async () => {
      while (!this.#isOver) await this.#round(this.#process.world.nowMs + chance.between(200, 600))
    })
    this.#process.start(async () => {
      while (!this.#isOver) {
        await this.#drain()
        await this.#process.sleep(chance.between(1, 300))
      }
    })
  }

  /** Several concurrent changes, then a pause in which the result is checked. */
  async #round(untilMs: number): Promise<void> {
    const { world, chance } = this.#process
    const before = this.#losses()
    let failures = 0
    const work = async (): Promise<void> => {
      while (world.nowMs < untilMs && !this.#isOver) {
        for (const count of [1, -1] as const) if (!(await this.#add(count))) failures++
        await this.#process.sleep(chance.between(1, 60))
      }
    }
    await Promise.all(Array.from({ length: hands }, work))
    // A request without an answer may still be waiting at a paused server.
    if (failures > 0) await this.#process.sleep(2000)
    const counted = await this.#counted.addPermits(0).catch(() => undefined)
    if (counted === undefined) return
    if (before === this.#losses()) this.#check(counted)
    this.#least = counted
    this.#most = counted
  }

  #check(counted: number): void {
    if (counted < this.#least || counted > this.#most)
      throw new BrokenLaw(`there are ${counted} permits; between ${this.#least} and ${this.#most} were added`)
  }

  end(): void {
    this.#isOver = true
  }

  /** At the end the permits are those that were added; then restores the initial number. */
  async settle(isLossy: boolean): Promise<void> {
    const counted = await this.#counted.addPermits(0)
    if (!isLossy) this.#check(counted)
    await this.#counted.addPermits(permits - counted)
    await this.#drained.addPermits(permits - (await this.#drained.addPermits(0)))
  }

  /** False if it is unknown whether it was done. */
  async #add(count: 1 | -1): Promise<boolean> {
    if (count > 0) this.#most++
    else this.#least--
    try {
      await this.#counted.addPermits(count)
    } catch {
      return false
    }
    if (count > 0) this.#least++
    else this.#most--
    return true
  }

  async #drain(): Promise<void> {
    const losses = this.#losses()
    try {
      const handle = await this.#drained.tryAcquire(500)
      await this.#drained.drainPermits()
      const left = await this.#drained.addPermits(0)
      if (handle?.isHeld && left < 1 && losses === this.#losses())
        throw new BrokenLaw('a permit that is taken was drained')
      await this.#drained.addPermits(permits - left)
      await handle?.unlock()
    } catch (error) {
      if (error instanceof BrokenLaw) throw error
    }
  }
}
