import { FirebreakError, InvalidOptionError } from '@firebreak/core'
import { defaultRedisPort, parseRedisUrl } from '@firebreak/core/resp'
import type { Redis } from '../redis.ts'
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
  // Each failing command reports its own error; an `error` event without a listener would end the process.
  client.on('error', () => {})
  return { redis: fromIoredis(client as unknown as IoredisLike), close: () => client.disconnect() }
}
