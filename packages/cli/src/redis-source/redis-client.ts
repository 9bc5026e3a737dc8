import { addressOf, defaultRedisPort } from '@firebreak/core/resp'
import { ioredisOptions } from '@firebreak/redis'
import { Cluster, Redis } from 'ioredis'
import type { RedisSource } from './redis-source.ts'

/** What an ioredis client needs to know of a Redis. */
export type RedisPlace = Pick<RedisSource, 'targets' | 'isCluster'>

/** An ioredis client for a Redis or for a whole cluster; user, password and TLS of the first node apply to all. */
export function redisClient({ targets, isCluster }: RedisPlace): Redis | Cluster {
  const { host: _host, port: _port, db: _db, ...common } = ioredisOptions(targets[0]!)
  if (!isCluster) return new Redis(ioredisOptions(targets[0]!))
  return new Cluster(
    targets.map(({ host = '127.0.0.1', port = defaultRedisPort }) => ({ host, port })),
    { redisOptions: common },
  )
}

/** How `@firebreak/redis` opens it: by one URL, or a cluster by a URL for each node. */
export function openingUrl({ url, targets, isCluster }: RedisSource): string | readonly string[] {
  if (!isCluster) return url
  const [first] = url.split(',')
  // The user, password and TLS of the first one apply to all.
  return targets.map((target, index) => (index === 0 ? first! : `redis://${addressOf(target)}`))
}
