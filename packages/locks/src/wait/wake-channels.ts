import type { TimerHandle, Timers } from '@firebreak/core'
import type { Redis, RedisSubscriber } from '@firebreak/redis'

/** One subscription, shared by all listeners. */
interface Channel {
  readonly listeners: Set<WakeListener>
  readonly ready: Promise<void>
  linger: TimerHandle | undefined
}

/** Called with a message, or with undefined if messages may have been missed or none will come any more. */
export type WakeListener = (message: string | undefined) => void

/** A listener's registration on a channel. */
export interface Listening {
  /** Resolves when Redis has confirmed the subscription; rejects if it failed. */
  readonly ready: Promise<void>
  end(): void
}

/**
 * Reference-counted channels over one subscriber: the first listener subscribes, and the last one leaves the
 * subscription open for `lingerMs`, because a lock that was contended once is soon contended again. After a reconnect
 * everyone is woken to try, since messages in between are lost.
 */
export class WakeChannels {
  readonly #redis: Redis
  readonly #lingerMs: number
  readonly #timers: Timers
  readonly #channels = new Map<string, Channel>()
  /** Unsubscriptions in progress; a new subscription to the same channel waits for them. */
  readonly #leaving = new Map<string, Promise<void>>()
  #subscriber: Promise<RedisSubscriber> | undefined
  #isClosed = false

  constructor(redis: Redis, lingerMs: number, timers: Timers) {
    this.#redis = redis
    this.#lingerMs = lingerMs
    this.#timers = timers
  }

  /** Number of subscribed channels. */
  get size(): number {
    return this.#channels.size
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  listen(name: string, listener: WakeListener): Listening {
    const channel = this.#channels.get(name) ?? this.#open(name)
    channel.linger?.cancel()
    channel.linger = undefined
    channel.listeners.add(listener)
    return { ready: channel.ready, end: () => this.#end(name, channel, listener) }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    const channels = [...this.#channels.values()]
    this.#channels.clear()
    for (const { linger, listeners } of channels) {
      linger?.cancel()
      for (const listener of [...listeners]) listener(undefined)
    }
    const subscriber = await this.#subscriber?.catch(() => undefined)
    await subscriber?.close()
  }

  #open(name: string): Channel {
    const listeners = new Set<WakeListener>()
    const channel: Channel = { listeners, ready: this.#subscribe(name, listeners), linger: undefined }
    // Listeners await `ready` too; a failed channel is reopened by the next.
    channel.ready.catch(() => {
      if (this.#channels.get(name) === channel) this.#channels.delete(name)
    })
    this.#channels.set(name, channel)
    return channel
  }

  async #subscribe(name: string, listeners: ReadonlySet<WakeListener>): Promise<void> {
    await this.#leaving.get(name)
    const subscriber = await this.#connect()
    await subscriber.subscribe(name, (message) => {
      for (const listener of listeners) listener(message)
    })
  }

  #connect(): Promise<RedisSubscriber> {
    this.#subscriber ??= this.#redis.subscriber().then(
      (subscriber) => {
        subscriber.onReconnect(() => {
          for (const { listeners } of this.#channels.values()) for (const listener of listeners) listener(undefined)
        })
        return subscriber
      },
      (error) => {
        this.#subscriber = undefined
        throw error
      },
    )
    return this.#subscriber
  }

  #end(name: string, channel: Channel, listener: WakeListener): void {
    if (!channel.listeners.delete(listener) || channel.listeners.size > 0) return
    channel.linger = this.#timers.setTimeout(() => {
      if (this.#channels.get(name) !== channel) return
      this.#channels.delete(name)
      const left = this.#unsubscribe(name).finally(() => {
        if (this.#leaving.get(name) === left) this.#leaving.delete(name)
      })
      this.#leaving.set(name, left)
    }, this.#lingerMs)
  }

  async #unsubscribe(name: string): Promise<void> {
    try {
      await (await this.#subscriber)?.unsubscribe(name)
    } catch {
      // The connection is gone, and the subscription with it.
    }
  }
}
