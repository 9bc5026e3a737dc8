import { monitorEventLoopDelay } from 'node:perf_hooks'
import { Redis } from 'ioredis'

/**
 * How slow this machine is while a test runs, measured beside it: plain round trips of a client without any cache, and
 * how late this process' timers come. A bar in milliseconds is meant for a machine that has a core to give; on one that has
 * none, a test may take twice what the control took in the same run.
 */
export class Slowness {
  readonly latencyMs: number[] = []
  readonly #redis: Redis
  readonly #delay = monitorEventLoopDelay({ resolution: 1 })
  #timer: NodeJS.Timeout | undefined
  #isStopped = false

  constructor(port: number) {
    this.#redis = new Redis(port, { maxRetriesPerRequest: null })
    this.#redis.on('error', () => {})
    this.#delay.enable()
    this.#ask()
  }

  /** The slowest round trip, or the latest timer. */
  get worstMs(): number {
    return Math.max(this.#delay.max / 1e6, ...this.latencyMs)
  }

  quantileMs(q: number): number {
    const sorted = [...this.latencyMs].sort((a, b) => a - b)
    const latency = sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)] ?? 0
    return Math.max(this.#delay.percentile(q * 100) / 1e6, latency)
  }

  /** The limit, or twice the control's worst time if that is more; `steps` for work that takes so many turns of both sides. */
  allow(barMs: number, steps = 1): number {
    return Math.max(barMs, 2 * this.worstMs * steps)
  }

  stop(): void {
    this.#isStopped = true
    clearTimeout(this.#timer)
    this.#delay.disable()
    this.#redis.disconnect()
  }

  #ask(): void {
    const startedAt = performance.now()
    this.#redis.ping().then(
      () => {
        this.latencyMs.push(performance.now() - startedAt)
        this.#again()
      },
      () => this.#again(),
    )
  }

  #again(): void {
    if (!this.#isStopped) this.#timer = setTimeout(() => this.#ask(), 2)
  }
}
