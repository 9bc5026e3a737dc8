import type { Redis, RedisNode, RedisReply, RedisSubscriber, RedisTopology } from '@firebreak/redis'
import type { ClientMember, OpenClients } from './open-clients.ts'

/** Sends Firebreak's own commands through whichever of several clients is open. */
export class SharedRedis implements Redis {
  readonly #clients: OpenClients
  /** Made once for each client, since an adapter remembers which scripts its server knows. */
  readonly #adapters = new WeakMap<ClientMember, Redis>()

  constructor(clients: OpenClients) {
    this.#clients = clients
  }

  get topology(): RedisTopology {
    return this.#redis()?.topology ?? 'standalone'
  }

  send(...args: Parameters<Redis['send']>): Promise<RedisReply> {
    return this.#use((redis) => redis.send(...args))
  }

  run(...args: Parameters<Redis['run']>): Promise<RedisReply> {
    return this.#use((redis) => redis.run(...args))
  }

  masters(): Promise<RedisNode[]> {
    return this.#use((redis) => redis.masters())
  }

  subscriber(): Promise<RedisSubscriber> {
    return this.#use((redis) => redis.subscriber())
  }

  // The client in use changes, so there is no single moment to report.
  onReconnect(): () => void {
    return () => {}
  }

  #redis(): Redis | undefined {
    const client = this.#clients.get()
    if (client === undefined) return undefined
    let redis = this.#adapters.get(client)
    if (redis === undefined) {
      redis = client.redis
      this.#adapters.set(client, redis)
    }
    return redis
  }

  #use<Value>(ask: (redis: Redis) => Promise<Value>): Promise<Value> {
    const redis = this.#redis()
    return redis === undefined ? Promise.reject(new Error('no Redis client is left')) : ask(redis)
  }
}
