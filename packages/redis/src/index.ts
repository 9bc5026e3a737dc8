export { fromIoredis, type IoredisLike } from './adapters/ioredis.ts'
export { type IoredisAddress, ioredisOptions } from './adapters/ioredis-options.ts'
export { fromNodeRedis, type NodeRedisLike } from './adapters/node-redis.ts'
export { type OwnRedis, openRedis } from './adapters/open-redis.ts'
export { type RedisClient, toRedis } from './adapters/to-redis.ts'
export { type PublishCommand, publishCommand, withPublishCommand } from './publish-command.ts'
export {
  type Redis,
  type RedisArgument,
  type RedisNode,
  type RedisReply,
  type RedisSubscriber,
  type RedisTopology,
  type RunOptions,
  replyErrorCode,
  type SendOptions,
} from './redis.ts'
export { defineScript, loadScript, type RedisScript } from './script/redis-script.ts'
