export { formatAddress, type NodeAddress, ownIp, parseAddress } from './address/node-address.ts'
export { IdClient, type IdClientOptions } from './client/id-client.ts'
export { IdsError, type IdsErrorCode } from './errors.ts'
export type { IdsAlarm, SnowflakeNodeOptions } from './node/node-options.ts'
export { timePath } from './node/peer-clocks.ts'
export { SnowflakeNode, type SnowflakeStatus } from './node/snowflake-node.ts'
export { type MariadbPool, mariadbSegmentStore } from './segment/mariadb-store.ts'
export { openSegmentStore } from './segment/open-store.ts'
export { type PostgresPool, postgresConnections } from './segment/postgres-connections.ts'
export { postgresSegmentStore } from './segment/postgres-store.ts'
export type { BufferStatus } from './segment/segment-buffer.ts'
export { SegmentIds, type SegmentIdsOptions, type StoreStatus } from './segment/segment-ids.ts'
export type { AllocatedSegment, SegmentStore, TagRow } from './segment/segment-store.ts'
export { sqliteSegmentStore } from './segment/sqlite-store.ts'
export { type Given, IdService, type IdServiceOptions } from './service/id-service.ts'
export { RespIdServer, type RespIdServerOptions } from './service/resp-server.ts'
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
