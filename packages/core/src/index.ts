export type {
  AlarmAcknowledgement,
  AlarmSilence,
  AlarmState,
  AlertDelivery,
  AlertRouteView,
  AlertShape,
  FinderRunView,
  KeyInspection,
  RulesVersionView,
} from './api/alert-api.ts'
export type {
  AutopilotView,
  BesideKeyView,
  ForecastMode,
  ForecastSettings,
  ForecastView,
  LoadSource,
  NodeLoadView,
  RecurrenceView,
} from './api/autopilot-api.ts'
export type {
  EpisodesView,
  HeatLetter,
  HeatMapView,
  HeatReport,
  HistoryAmounts,
  HistoryRow,
  HistorySettings,
  HistorySettingsView,
  HistorySubject,
  HistoryView,
  HotEpisode,
  ReportGroup,
  ReportKey,
} from './api/history-api.ts'
export type {
  AlarmView,
  ApiError,
  AuditEntry,
  AuditHead,
  DryRunKey,
  DryRunView,
  HeatStateName,
  HistoryEvent,
  HostView,
  HubView,
  IngestView,
  KeyDetail,
  KeyEffectView,
  KeyGroupView,
  KeyHandling,
  KeyView,
  Overview,
  ReportTransport,
  RuleStalenessView,
  RulesView,
  Safety,
  SlotView,
  TrafficPoint,
  TransportView,
  WatcherView,
} from './api/hub-api.ts'
export { allReads, readsOfRedis, savedReads } from './api/traffic-sums.ts'
export { BoundedCache, type BoundedCacheOptions } from './cache/bounded-cache.ts'
export { asListener } from './errors/as-listener.ts'
export { didYouMean } from './errors/did-you-mean.ts'
export { explainDiskTrouble } from './errors/disk-trouble.ts'
export { describeValue, FirebreakError, InvalidOptionError, withoutCredentials } from './errors/firebreak-error.ts'
export { keyGroup, largestGroups } from './keys/key-group.ts'
export { keyBytes, keyName, keyText, parseKeyText, readableKey } from './keys/key-text.ts'
export { plainLines, plainText } from './keys/plain-text.ts'
export {
  BinaryReportCursor,
  encodeBinaryReport,
  parseBinaryReport,
  type SectionSurvey,
  writeReportEntry,
  writeReportRange,
} from './report/binary-report.ts'
export { isKafkaUrl, type KafkaAddress, kafkaReports, parseKafkaUrl } from './report/kafka-reports.ts'
export { natsReports } from './report/nats-reports.ts'
export {
  type Report,
  type ReportEntry,
  type ReportRefusal,
  ReportRefusedError,
  type ReportSection,
} from './report/report.ts'
export { formatTextReport, parseTextReport, sectionTotal, type TextReportVersion } from './report/text-report.ts'
export { VarintReader, VarintWriter } from './report/varint.ts'
export { copyName, isPlacedName, maxCopies, untagged } from './strategy/copy-name.ts'
export { isKnownEntry, isKnownStrategy } from './strategy/known-strategy.ts'
export {
  type PublishedTable,
  publishEveryMs,
  type ReadTable,
  readPublishedTable,
  toPublishedTable,
} from './strategy/published-table.ts'
export {
  type CombineStrategy,
  defaultLocalCache,
  type ExpireStrategy,
  entryId,
  type LimitAlgorithm,
  type LimitScope,
  type LocalCacheStrategy,
  limitAlgorithms,
  limitScopes,
  type ObserveStrategy,
  type RateLimitStrategy,
  type RedundantKeysStrategy,
  rateLimitLapseMs,
  type Strategy,
  type StrategyName,
  type TableEntry,
} from './strategy/strategy.ts'
export {
  type ApplyResult,
  entryFromJson,
  entryToJson,
  type StrategyList,
  StrategyTable,
  type TableDelta,
  type TableSnapshot,
  toStrategyList,
} from './strategy/strategy-table.ts'
export { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers, wallClock } from './time/clock.ts'
export { type Runtime, systemRuntime } from './time/runtime.ts'
export { secretSeed } from './time/secret-seed.ts'
export { TimingWheel, type TimingWheelOptions } from './time/timing-wheel.ts'
export { version } from './version.ts'
export {
  type ClaimPayload,
  decodeFrame,
  decodeJsonPayload,
  encodeFrame,
  encodeJsonFrame,
  type Frame,
  FrameError,
  type FrameType,
  frameVersion,
  type HeartbeatPayload,
  type HelloPayload,
  type InspectedPayload,
  type InspectPayload,
  type InvalidatedKey,
  type Invalidation,
  type JsonFrameType,
  type JsonPayloads,
  type KeyEffect,
  type LoadPayload,
  maxFrameHeadBytes,
  type NodeLoad,
  type PlacedCopiesPayload,
  type ProbePayload,
  type RefusedPayload,
  type ShieldCounters,
  type StatusPayload,
  UnknownFrameError,
  type WatchedCluster,
  type WatcherStatus,
  type WelcomePayload,
  writeFrameHead,
} from './wire/frame.ts'
export { decodeInvalidation, encodeInvalidation } from './wire/invalidation.ts'
