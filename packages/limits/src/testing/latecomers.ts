import type { SimulatedProcess, VirtualValkey } from '@firebreak/testkit'
import type { RedisLimiter } from '../redis/redis-limiter.ts'
import { fixedWindow } from '../spec/specs.ts'
import { BrokenLaw } from './broken-law.ts'

/** What a call may need beyond its deadline: the offset of Redis' clock is known but for the way there, which may be slow. */
const slackMs = 300

/** Calls that were answered without Redis, each for a key of its own: none of them is charged afterwards. */
export class Latecomers {
  static readonly spec = fixedWindow({ limit: 10, windowMs: 86_400_000, anchor: 'firstHit' })
  readonly #valkey: VirtualValkey
  /** Keys whose call was over, as they were then. */
  readonly #wereCharged = new Map<string, boolean>()

  constructor(valkey: VirtualValkey) {
    this.#valkey = valkey
  }

  /** One call; gives whether Redis has answered it. `isKnown` where it has answered one of this process before. */
  async take(limiter: RedisLimiter, process: SimulatedProcess, isKnown: boolean): Promise<boolean> {
    const key = process.runtime.newId()
    const { source } = await limiter.take(key)
    if (source === 'redis') return true
    if (isKnown) {
      process.world.schedule(slackMs, () => {
        const name = limiter.keys.state(key)
        this.#wereCharged.set(name, this.#isCharged(name))
      })
    }
    return false
  }

  check(): void {
    for (const [name, wasCharged] of this.#wereCharged) {
      if (wasCharged || !this.#isCharged(name)) continue
      throw new BrokenLaw(`${name} was charged by a call that had been answered ${slackMs} ms before`)
    }
  }

  #isCharged(name: string): boolean {
    return this.#valkey.ask('EXISTS', name) === 1
  }
}
