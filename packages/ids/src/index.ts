export { formatAddress, type NodeAddress, ownIp, parseAddress } from './address/node-address.ts'
export { IdsError, type IdsErrorCode } from './errors.ts'
export type { EtcdClientOptions } from './etcd/etcd-client.ts'
export type { IdsAlarm, SnowflakeNodeOptions } from './node/node-options.ts'
export { timePath } from './node/peer-clocks.ts'
export { SnowflakeNode, type SnowflakeStatus } from './node/snowflake-node.ts'
export { type DecodedSnowflake, decodeSnowflake, defaultEpochMs } from './snowflake/layout.ts'
export { Snowflake, type SnowflakeOptions, type TimeMark } from './snowflake/snowflake.ts'
export { EtcdRegistry, type EtcdRegistryOptions } from './workers/etcd-registry.ts'
export { RedisRegistry, type RedisRegistryOptions } from './workers/redis-registry.ts'
export type {
  ClaimOptions,
  RegisteredWorker,
  RegistryOptions,
  WorkerRecord,
  WorkerRegistry,
} from './workers/worker-registry.ts'
export { ZooKeeperRegistry, type ZooKeeperRegistryOptions } from './workers/zookeeper-registry.ts'
export { ZooKeeperClient, type ZooKeeperClientOptions } from './zookeeper/zookeeper-client.ts'
