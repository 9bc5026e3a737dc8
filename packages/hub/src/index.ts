export type { Role } from './access/credential.ts'
export { CredentialBook, type CredentialView } from './access/credential-book.ts'
export type { AppToken, HubTokens, PersonToken } from './access/fixed-credentials.ts'
export { openCredentials } from './access/open-credentials.ts'
export { newCredentialBody, toNewCredential } from './access/token-routes.ts'
export { readTokens } from './access/tokens-file.ts'
export { type AlarmNotice, AlarmWebhooks, type AlarmWebhooksOptions } from './alarms/alarm-webhooks.ts'
export { hubSettings } from './config/hub-settings.ts'
export {
  type HubConfig,
  type HubConfigInput,
  readRules,
  resolveHubConfig,
} from './config/resolve-hub-config.ts'
export type { NodeOfSlot } from './decide/access-totals.ts'
export {
  chooseFirstStrategy,
  makeStrategy,
  type StrategyChoice,
  type StrategyChooser,
} from './decide/choose-strategy.ts'
export type { SensorChannel } from './deliver/sensor-channel.ts'
export type { SensorSessions } from './deliver/sensor-sessions.ts'
export { type EngineNodeView, EngineSensor, type EngineSensorOptions, type EngineView } from './engine/engine-sensor.ts'
export { ApiProblem, HubConfigError, NotLoopbackError, StoreError } from './errors.ts'
export { type FindingRoutesOptions, findingRoutes } from './findings/finding-routes.ts'
export { Forecaster, type ForecasterOptions } from './forecast/forecaster.ts'
export { CountedClusters, type CountedClustersOptions } from './heat/counted-clusters.ts'
export type { CountedKeys, CountListener, NearRow } from './heat/counted-keys.ts'
export type { HubPlugin } from './http/hub-server.ts'
export type { ServiceTable } from './http/table-route.ts'
export { HubCore } from './hub-core.ts'
export type { HubCoreOptions } from './hub-options.ts'
export { type IdsRoutesOptions, idsRoutes } from './ids/ids-routes.ts'
export { type IdsServer, type IdsServerOptions, startIdsServer } from './ids/ids-server.ts'
export { type LimitsRoutesOptions, limitsRoutes } from './limits/limits-routes.ts'
export { type LimitsServer, type LimitsServerOptions, startLimitsServer } from './limits/limits-server.ts'
export type { SaleDesk, SaleLetter, SaleVoucher } from './sale/sale-routes.ts'
export { type HubServices, type HubServicesOptions, openHubServices } from './services/hub-services.ts'
export { type Hub, type HubOptions, startHub } from './start-hub.ts'
export { AuditCheck, type AuditFault, type AuditVerdict, formatHead, parseHead } from './store/audit-chain.ts'
export type {
  AuditEnd,
  EntryName,
  HistoryQuery,
  HubState,
  HubStore,
  StoredEntry,
  StoreLimits,
} from './store/hub-store.ts'
export { MemoryStore } from './store/memory-store.ts'
export { openRedisStore } from './store/open-redis-store.ts'
export { openStoreAt, type StorePlace } from './store/open-store-at.ts'
export { RedisStore, type RedisStoreOptions } from './store/redis-store.ts'
export { SqliteStore } from './store/sqlite-store.ts'
export { HubWatchers } from './watchers/hub-watchers.ts'
export { LanePublisher, type LanePublisherOptions, type PublishInvalidation } from './watchers/lane-publisher.ts'
export { httpLoader, type RowLoader, RowRefresher, type RowRefresherOptions } from './watchers/row-refresher.ts'
export { SourceWatcher, type WatcherCounts } from './watchers/source-watcher.ts'
export {
  type AofWatcherSetting,
  type BinlogWatcherSetting,
  parseWatchers,
  type ReplicaWatcherSetting,
  type WatcherSetting,
} from './watchers/watcher-settings.ts'
