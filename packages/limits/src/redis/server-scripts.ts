import { type Runtime, systemRuntime } from '@firebreak/core'
import type { Redis, RedisArgument, RedisScript } from '@firebreak/redis'
import { DeadlineError } from './availability.ts'
import { ServerTime } from './server-time.ts'

/** Options for scripts that begin with time.lua. */
export interface ServerScriptsOptions {
  /** A call that has not run by then must not run any more. */
  readonly deadlineMs: number
  /** Only for tests: the time passed to scripts. */
  readonly testClock: { now(): number } | undefined
  /** @default the system's */
  readonly runtime?: Runtime | undefined
}

/** The arguments after the time. */
type ArgsOf = (serverNowMs: number) => readonly RedisArgument[]

/** A charge whose reply was lost may have been made. Replies contain only numbers: nothing needs decoding as text. */
const sendOptions = { atMostOnce: true, asBytes: true }

/** Runs scripts that begin with time.lua: on Redis' own time, and never after their deadline. */
export class ServerScripts {
  readonly #redis: Redis
  readonly #options: ServerScriptsOptions
  readonly #runtime: Runtime
  readonly #time: ServerTime

  constructor(redis: Redis, options: ServerScriptsOptions) {
    this.#redis = redis
    this.#options = options
    this.#runtime = options.runtime ?? systemRuntime
    this.#time = new ServerTime(this.#runtime.wallClock)
  }

  /** The reply without the time. `argsOf` gets the server's time as far as it is known. */
  run(script: RedisScript, keys: readonly string[], argsOf: ArgsOf): Promise<readonly number[]> {
    return this.#send(script, keys, argsOf, this.#runtime.clock.now() + this.#options.deadlineMs)
  }

  #send(script: RedisScript, keys: readonly string[], argsOf: ArgsOf, endsAt: number): Promise<readonly number[]> {
    const { deadlineMs, testClock } = this.#options
    const sentAt = this.#runtime.clock.now()
    if (sentAt > endsAt) return Promise.reject(new DeadlineError('the call reached Redis after its deadline'))
    const given = testClock === undefined ? '' : Math.floor(testClock.now())
    const latest = testClock === undefined ? this.#time.latest(sentAt, deadlineMs) : ''
    const args = [given, latest, ...argsOf(given === '' ? this.#time.at(sentAt) : given)]
    return this.#redis.run(script, keys, args, sendOptions).then((received) => {
      const reply = received as number[]
      // One that was held up on its way there says too little of the time: calls could come that much too late.
      if (!this.#time.isKnown || this.#runtime.clock.now() <= endsAt) this.#time.learn(sentAt, reply[0]!)
      // Only the time: nothing ran, because it came too late, the server's clock was stepped, or the calendar's edges
      // were guessed from a wrong clock. Now its time is known, and retrying cannot charge twice.
      return reply.length > 1 ? reply.slice(1) : this.#send(script, keys, argsOf, endsAt)
    })
  }
}
