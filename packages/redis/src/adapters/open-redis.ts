import { FirebreakError, InvalidOptionError } from '@firebreak/core'
import { defaultRedisPort, parseRedisUrl, RedisLostError } from '@firebreak/core/resp'
import type { Redis, RedisNode, RedisReply, RedisSubscriber } from '../redis.ts'
import { fromIoredis, type IoredisLike } from './ioredis.ts'
import { ioredisOptions } from './ioredis-options.ts'

/** A connection that we opened. */
export interface OwnRedis {
  readonly redis: Redis
  close(): void
}

/**
 * Opens a Redis by its URL, or a cluster by the URLs of some of its nodes, using ioredis if it is installed. User,
 * password and TLS of a cluster's first URL apply to all of its nodes, including those discovered later. A command to a
 * server that is gone fails after five seconds; one to a cluster waits until one of its nodes answers.
 */
export async function openRedis(url: string | readonly string[], database?: number): Promise<OwnRedis> {
  const { Cluster, Redis: Client } = await import('ioredis').catch((cause: unknown) => {
    throw new FirebreakError('FB_CLIENT_UNKNOWN', 'opening a Redis by its URL needs the package ioredis', { cause })
  })
  const options = { maxRetriesPerRequest: 1, connectTimeout: 3000, commandTimeout: 5000 }
  const chosen = database === undefined ? {} : { db: database }
  let client: InstanceType<typeof Client> | InstanceType<typeof Cluster>
  if (typeof url === 'string') client = new Client({ ...options, ...ioredisOptions(url), ...chosen })
  else {
    const targets = url.map(parseRedisUrl)
    const { host: _host, port: _port, db, ...common } = ioredisOptions(targets[0]!)
    if ((database ?? db ?? 0) !== 0) {
      throw new InvalidOptionError('database', database ?? db, '0: a Redis Cluster has no other')
    }
    const nodes = targets.map(({ host = '127.0.0.1', port = defaultRedisPort }) => ({ host, port }))
    client = new Cluster(nodes, { redisOptions: { ...options, ...common } })
  }
  // An `error` event without a listener would end the process.
  let lastTrouble: Error | undefined
  client.on('error', (error: Error) => {
    lastTrouble = error
  })
  const opened = fromIoredis(client as unknown as IoredisLike)
  const close = () => client.disconnect()
  if (typeof url !== 'string') return { redis: opened, close }
  const { host = '127.0.0.1', port = defaultRedisPort, socketPath } = parseRedisUrl(url)
  return { redis: new NamingCause(opened, socketPath ?? `${host}:${port}`, () => lastTrouble), close }
}

/** Says why a server could not be reached, where ioredis only names its option for how often it tried. */
class NamingCause implements Redis {
  readonly topology
  readonly #redis: Redis
  readonly #address: string
  readonly #lastTrouble: () => Error | undefined

  constructor(redis: Redis, address: string, lastTrouble: () => Error | undefined) {
    this.topology = redis.topology
    this.#redis = redis
    this.#address = address
    this.#lastTrouble = lastTrouble
  }

  send(...call: Parameters<Redis['send']>): Promise<RedisReply> {
    return this.#redis.send(...call).catch(this.#explain)
  }

  run(...call: Parameters<Redis['run']>): Promise<RedisReply> {
    return this.#redis.run(...call).catch(this.#explain)
  }

  async masters(): Promise<RedisNode[]> {
    return [{ address: this.#address, send: (...call) => this.send(...call) }]
  }

  subscriber(): Promise<RedisSubscriber> {
    return this.#redis.subscriber()
  }

  onReconnect(listener: () => void): () => void {
    return this.#redis.onReconnect(listener)
  }

  readonly #explain = (error: Error): never => {
    const trouble = this.#lastTrouble()
    if (error.name !== 'MaxRetriesPerRequestError' || trouble === undefined) throw error
    // Where a name has several addresses, the errors of all are in one without a message.
    const reason = trouble.message || (trouble as { code?: string }).code
    const sentence = `cannot connect to ${this.#address}: ${reason}`
    throw new RedisLostError('FB_REDIS_CONNECT', this.#address, sentence, { cause: trouble })
  }
}
