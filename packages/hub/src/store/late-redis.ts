import type { TimerHandle, Timers } from '@firebreak/core'
import type { Redis, RedisNode, RedisReply, RedisSubscriber, RedisTopology } from '@firebreak/redis'

/** A client, and how to close it. */
export interface OpenedRedis {
  readonly redis: Redis
  readonly disconnect: () => void
}

export interface LateRedisOptions {
  /** Connects once; rejects if nobody answers. */
  readonly open: () => Promise<OpenedRedis>
  /** Why the first attempt failed. */
  readonly failure: Error
  readonly timers: Timers
  /** The wait before each further attempt. */
  readonly retryMs: number
}

/**
 * A Redis that did not answer when it was first needed. Every call is refused until it does; from then on its own
 * client, which reconnects by itself, carries them. Until then not even its topology is known.
 */
export class LateRedis implements Redis {
  readonly #options: LateRedisOptions
  readonly #listeners: (() => void)[] = []
  #opened: OpenedRedis | undefined
  #failure: Error
  #retry: TimerHandle | undefined
  #isClosed = false

  constructor(options: LateRedisOptions) {
    this.#options = options
    this.#failure = options.failure
    this.#plan()
  }

  get topology(): RedisTopology {
    return this.#opened?.redis.topology ?? 'standalone'
  }

  async send(...args: Parameters<Redis['send']>): Promise<RedisReply> {
    return this.#redis().send(...args)
  }

  async run(...args: Parameters<Redis['run']>): Promise<RedisReply> {
    return this.#redis().run(...args)
  }

  async masters(): Promise<RedisNode[]> {
    return this.#redis().masters()
  }

  async subscriber(): Promise<RedisSubscriber> {
    return this.#redis().subscriber()
  }

  onReconnect(listener: () => void): () => void {
    if (this.#opened !== undefined) return this.#opened.redis.onReconnect(listener)
    this.#listeners.push(listener)
    return () => void this.#listeners.splice(this.#listeners.indexOf(listener) >>> 0, 1)
  }

  close(): void {
    this.#isClosed = true
    this.#retry?.cancel()
    this.#opened?.disconnect()
  }

  #redis(): Redis {
    if (this.#opened === undefined) throw new Error(`not connected: ${this.#failure.message}`, { cause: this.#failure })
    return this.#opened.redis
  }

  #plan(): void {
    const { timers, retryMs } = this.#options
    this.#retry = timers.setTimeout(() => void this.#open(), retryMs)
  }

  async #open(): Promise<void> {
    try {
      const opened = await this.#options.open()
      if (this.#isClosed) {
        opened.disconnect()
        return
      }
      this.#opened = opened
      for (const listener of this.#listeners.splice(0)) opened.redis.onReconnect(listener)
    } catch (error) {
      this.#failure = error as Error
      if (!this.#isClosed) this.#plan()
    }
  }
}
