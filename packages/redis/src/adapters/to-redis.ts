import { describeValue, FirebreakError } from '@firebreak/core'
import type { Redis } from '../redis.ts'
import { fromIoredis, type IoredisLike } from './ioredis.ts'
import { fromNodeRedis, type NodeRedisLike } from './node-redis.ts'

/** A client that an adapter supports, or a Redis interface already. */
export type RedisClient = Redis | IoredisLike | NodeRedisLike

/** Wraps whichever client the application uses in Firebreak's narrow Redis interface. */
export function toRedis(client: RedisClient): Redis {
  const shape = client as Partial<Redis & IoredisLike & NodeRedisLike>
  if (typeof shape.run === 'function' && typeof shape.topology === 'string') return client as Redis
  if (typeof shape.callBuffer === 'function') return fromIoredis(client as IoredisLike)
  if (typeof shape.withTypeMapping === 'function') return fromNodeRedis(client as NodeRedisLike)
  throw new FirebreakError(
    'FB_CLIENT_UNKNOWN',
    `${describeValue(client)} is not a Redis client that Firebreak knows; pass an ioredis (5, 6), iovalkey or node-redis (5, 6) client`,
  )
}
