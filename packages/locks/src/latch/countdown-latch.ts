import { loadScript, publishCommand } from '@firebreak/redis'
import type { LockEngine } from '../engine/lock-engine.ts'
import { LocksClosedError } from '../errors.ts'
import { besideName } from '../lock/lock-keys.ts'
import { requireInteger, requireWait } from '../options.ts'
import { GiveUp } from '../wait/give-up.ts'

const countDownScript = /* @__PURE__ */ loadScript(new URL('./count-down.lua', import.meta.url))

/** Waiters wait until a count has reached zero; key and channel are those of Java's Redisson. */
export class CountdownLatch {
  readonly name: string
  readonly #engine: LockEngine
  readonly #channel: string

  constructor(engine: LockEngine, name: string) {
    this.name = name
    this.#engine = engine
    const tagged = name.includes('{') ? name : `{${name}}`
    this.#channel = `redisson_countdownlatch__channel__${tagged}`
  }

  /** Sets the count if the latch is not set; false if it is. */
  async trySetCount(count: number): Promise<boolean> {
    requireInteger('count', count, 1)
    return (await this.#engine.redis.send(['SET', this.name, count, 'NX'])) === 'OK'
  }

  /** The remaining count; 0 if the latch is not set. */
  async count(): Promise<number> {
    return Number((await this.#engine.redis.send(['GET', this.name])) ?? 0)
  }

  /** Counts down by one; returns the remaining count. */
  async countDown(): Promise<number> {
    const keys = [this.name, besideName('firebreak_latch_counted', this.name)]
    const args = [this.#engine.options.runtime.newId(), this.#channel, await publishCommand(this.#engine.redis)]
    return Number(await this.#engine.persistently(() => this.#engine.redis.run(countDownScript, keys, args)))
  }

  /** Waits until the count is zero; false if `waitMs` passed first. Rejects with the reason of an aborted signal. */
  async wait(options: { readonly waitMs?: number; readonly signal?: AbortSignal } = {}): Promise<boolean> {
    const { waitMs = Number.POSITIVE_INFINITY, signal } = options
    requireWait(waitMs)
    signal?.throwIfAborted()
    const { channels, options: engineOptions } = this.#engine
    const { timers, leaseMs } = engineOptions
    if ((await this.count()) === 0) return true
    if (channels.isClosed) throw new LocksClosedError()
    const giveUp = new GiveUp(waitMs, signal, timers)
    let look: () => void = () => {}
    const listening = channels.listen(this.#channel, () => {
      if (channels.isClosed) giveUp.abort()
      else look()
    })
    // The key may go without a message: deleted by hand, or flushed.
    const checking = timers.setInterval(() => look(), leaseMs)
    try {
      for (;;) {
        const told = new Promise<void>((resolve) => {
          look = resolve
        })
        // Checked after the subscription is confirmed, and again after each message, so that none can be missed.
        const isOpen = listening.ready.then(async () => (await this.count()) === 0)
        const answer = await giveUp.race(isOpen, () => {})
        if (answer === true) return true
        if (answer === 'gave-up' || (await giveUp.race(told, () => {})) === 'gave-up') break
      }
    } catch (error) {
      // A subscription still in progress fails with its connection.
      throw channels.isClosed ? new LocksClosedError() : error
    } finally {
      checking.cancel()
      giveUp.dispose()
      listening.end()
    }
    if (channels.isClosed) throw new LocksClosedError()
    signal?.throwIfAborted()
    return false
  }
}
