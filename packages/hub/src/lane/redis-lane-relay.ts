import { publishCommand, type Redis, type RedisSubscriber } from '@firebreak/redis'
import type { LaneRelay } from './lane-relay.ts'

/** The lane's relay on Redis' own pub/sub, sharded on a cluster that can do that. */
export class RedisLaneRelay implements LaneRelay {
  readonly #redis: Redis
  readonly #channel: string
  /** Distinguishes our own messages, which we also receive, from those of others. */
  readonly #name: string
  #subscriber: RedisSubscriber | undefined

  constructor(redis: Redis, channel: string, name: string) {
    this.#redis = redis
    this.#name = name
    this.#channel = channel
  }

  async publish(bytes: Uint8Array): Promise<void> {
    const command = await publishCommand(this.#redis)
    await this.#redis.send([command, this.#channel, `${this.#name} ${Buffer.from(bytes).toString('base64')}`])
  }

  async open(onMessage: (bytes: Uint8Array) => void, onGap: () => void): Promise<void> {
    const subscriber = await this.#redis.subscriber()
    this.#subscriber = subscriber
    // Messages between two connections are lost.
    subscriber.onReconnect(onGap)
    await subscriber.subscribe(this.#channel, (message) => {
      const [name, text] = message.split(' ', 2) as [string, string]
      if (name !== this.#name) onMessage(Buffer.from(text, 'base64'))
    })
  }

  async close(): Promise<void> {
    await this.#subscriber?.close()
  }
}
