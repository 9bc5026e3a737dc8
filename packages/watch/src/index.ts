export { AofTail, type AofTailOptions } from './aof/aof-tail.ts'
export { type AofPart, increments, parseManifest } from './aof/manifest.ts'
export type { BinlogConnection } from './binlog/binlog-connection.ts'
export {
  type BinlogCheckpoint,
  type BinlogListener,
  BinlogSource,
  type BinlogSourceOptions,
} from './binlog/binlog-source.ts'
export type { KeyRefresh, RowChange } from './binlog/key-refresh.ts'
export { type KeyMapping, parseRowMapping, type Row, type RowMapping, type ValueRecipe } from './binlog/row-mapping.ts'
export type { Change, ChangedKey, ChangeListener, ChangeSource, SourceState } from './change/change.ts'
export { ChangeReader } from './change/change-reader.ts'
export { sourceRetrySteps } from './change/source-retry.ts'
export { WatchError, type WatchErrorCode } from './errors.ts'
export type { ReplicaPosition } from './replica/replica-feed.ts'
export { ReplicaStream, type ReplicaStreamOptions } from './replica/replica-stream.ts'
