import { steadyClock } from '@firebreak/core'
import type { Redis, RedisArgument, RedisScript } from '@firebreak/redis'
import { DeadlineError } from './availability.ts'
import { ServerTime } from './server-time.ts'

/** How scripts that begin with time.lua are run. */
export interface ServerScriptsOptions {
  /** After this a call that has not run must not run any more. */
  readonly deadlineMs: number
  /** For tests only: the time that scripts are handed. */
  readonly testClock: { now(): number } | undefined
}

/** A charge whose reply was lost may have been made. */
const atMostOnce = { atMostOnce: true }

/** Runs scripts that begin with time.lua: on Redis' own time, and never after their deadline. */
export class ServerScripts {
  readonly #redis: Redis
  readonly #options: ServerScriptsOptions
  readonly #time = new ServerTime()

  constructor(redis: Redis, options: ServerScriptsOptions) {
    this.#redis = redis
    this.#options = options
  }

  /** The reply after the time. `argsOf` is told the server's time as far as it is known. */
  async run(
    script: RedisScript,
    keys: readonly string[],
    argsOf: (serverNowMs: number) => readonly RedisArgument[],
  ): Promise<readonly number[]> {
    const { deadlineMs, testClock } = this.#options
    const startedAt = steadyClock.now()
    for (;;) {
      const sentAt = steadyClock.now()
      if (sentAt - startedAt > deadlineMs) throw new DeadlineError('the call came to Redis after its deadline')
      const given = testClock === undefined ? '' : Math.floor(testClock.now())
      const latest = testClock === undefined ? this.#time.latest(sentAt, deadlineMs) : ''
      const args = [given, latest, ...argsOf(given === '' ? this.#time.at(sentAt) : given)]
      const reply = (await this.#redis.run(script, keys, args, atMostOnce)) as number[]
      this.#time.learn(sentAt, reply[0]!)
      if (reply.length > 1) return reply.slice(1)
      // The time alone: nothing ran, because it came too late, the server's clock was stepped, or the edges of the
      // calendar were guessed from a wrong clock. Now its time is known, and asking again cannot charge twice.
    }
  }
}
