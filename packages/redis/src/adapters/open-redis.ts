import { FirebreakError } from '@firebreak/core'
import type { Redis } from '../redis.ts'
import { fromIoredis, type IoredisLike } from './ioredis.ts'

/** A connection that we opened. */
export interface OwnRedis {
  readonly redis: Redis
  close(): void
}

/**
 * Opens a Redis by its URL, or a cluster by the URLs of some of its nodes, using ioredis if it is installed. A command
 * fails after five seconds instead of waiting for a server that is gone.
 */
export async function openRedis(url: string | readonly string[], database = 0): Promise<OwnRedis> {
  const { Cluster, Redis: Client } = await import('ioredis').catch((cause: unknown) => {
    throw new FirebreakError('FB_CLIENT_UNKNOWN', 'opening a Redis by its URL needs the package ioredis', { cause })
  })
  const options = { maxRetriesPerRequest: 1, connectTimeout: 3000, commandTimeout: 5000 }
  const client =
    typeof url === 'string'
      ? new Client(url, { ...options, db: database })
      : new Cluster([...url], { redisOptions: options })
  // Each failing command reports its own error; an `error` event without a listener would end the process.
  client.on('error', () => {})
  return { redis: fromIoredis(client as unknown as IoredisLike), close: () => client.disconnect() }
}
