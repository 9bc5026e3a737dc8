export type {
  AlarmView,
  ApiError,
  AuditEntry,
  DryRunView,
  HeatStateName,
  HistoryEvent,
  HostView,
  IngestView,
  KeyDetail,
  KeyEffectView,
  KeyView,
  Overview,
  RuleStalenessView,
  RulesView,
  SlotView,
  TrafficPoint,
  WatcherView,
} from './api/hub-api.ts'
export { BoundedCache, type BoundedCacheOptions } from './cache/bounded-cache.ts'
export { type ArgumentOffsets, BufferArgs, type CommandArgs, ListArgs } from './commands/command-args.ts'
export type {
  CommandFlag,
  CommandRow,
  CommandType,
  KeyAccess,
} from './commands/command-row.ts'
export { allCommands, commandOf, commandOfArgs, commandOfBytes } from './commands/command-table.ts'
export type { KeyRule, KeySpec } from './commands/key-spec.ts'
export {
  firstKeyIndex,
  forEachKey,
  isCacheable,
  type KeyArgument,
  type KeyVisitor,
  keysOf,
  mayBlock,
} from './commands/keys-of.ts'
export { NameTable } from './commands/name-table.ts'
export type { BytePipe, OpenPipe, PipeOwner } from './connection/byte-pipe.ts'
export { type Greeting, type GreetingResult, greet } from './connection/greeting.ts'
export { type RedisLostCode, RedisLostError, RedisReplyError, RedisUrlError } from './connection/redis-error.ts'
export {
  addressOf,
  defaultRedisPort,
  maskUrl,
  parseRedisUrl,
  parseRedisUrls,
  type RedisTarget,
  type RedisTlsOptions,
} from './connection/redis-target.ts'
export { RespClient, type RespClientOptions } from './connection/resp-client.ts'
export {
  isErrorReply,
  type ReplyHandler,
  RespConnection,
  type RespConnectionOptions,
} from './connection/resp-connection.ts'
export { parseInfo, type ServerMode, serverModeOf } from './connection/server-info.ts'
export { Dict, type DictOptions, maxPreload } from './dict/dict.ts'
export { hashBytes } from './dict/hash-bytes.ts'
export { maxKeyBytes } from './dict/key-arena.ts'
export { didYouMean } from './errors/did-you-mean.ts'
export { explainDiskTrouble } from './errors/disk-trouble.ts'
export { describeValue, FirebreakError, InvalidOptionError } from './errors/firebreak-error.ts'
export { AccessCounter, type AccessCounterOptions } from './heat/access-counter.ts'
export type { AccessDrain, DrainVisitor } from './heat/access-drain.ts'
export { ByteAccessCounter } from './heat/byte-access-counter.ts'
export { HeatWindow, type HeatWindowOptions } from './heat/heat-window.ts'
export type { KeyBatch } from './heat/key-batch.ts'
export { KeyHasher } from './heat/key-hasher.ts'
export { KeyTally } from './heat/key-tally.ts'
export type { TallyVisitor } from './heat/tally-visitor.ts'
export {
  hotSamplingFactor,
  maxSamplingFactor,
  nextSamplingFactor,
  type SampledLevel,
  type SamplingLoad,
  ThresholdSampler,
} from './heat/threshold-sampling.ts'
export { type WindowRules, windowSlices } from './heat/window-rules.ts'
export { keyGroup, largestGroups } from './keys/key-group.ts'
export { keyBytes, keyName, keyText, parseKeyText, readableKey } from './keys/key-text.ts'
export type { HistogramPoint, MetricFamily, MetricLabels, MetricPoint } from './metrics/metric-family.ts'
export {
  type BatchResultLike,
  type MeterLike,
  type ObservableLike,
  observeWithMeter,
} from './metrics/observe-with-meter.ts'
export { OtlpExporter, type OtlpExporterOptions } from './metrics/otlp-exporter.ts'
export { type OtlpOptions, type ResolvedOtlpOptions, resolveOtlpOptions } from './metrics/otlp-options.ts'
export {
  type OtlpAttribute,
  type OtlpHistogram,
  type OtlpMetric,
  type OtlpNumber,
  type OtlpRequest,
  otlpRequest,
} from './metrics/otlp-request.ts'
export { type OtlpVariables, otlpVariables, parsePairs, readOtlpVariables } from './metrics/otlp-variables.ts'
export { prometheusText } from './metrics/prometheus-text.ts'
export {
  BinaryReportCursor,
  encodeBinaryReport,
  parseBinaryReport,
  type SectionSurvey,
  writeReportEntry,
  writeReportRange,
} from './report/binary-report.ts'
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
export { type CommandArgument, encodeCommand } from './resp/encode-command.ts'
export { encodeReply, type RespVersion, writeReply } from './resp/encode-reply.ts'
export { defaultRespLimits, type RespLimits } from './resp/limits.ts'
export { ReplyDecoder, type ReplyDecoderOptions } from './resp/reply-decoder.ts'
export { ReplyScanner } from './resp/reply-scanner.ts'
export { RequestParser, type RequestParserOptions } from './resp/request-parser.ts'
export { RequestError, RespError, type RespErrorCode } from './resp/resp-error.ts'
export { textOf, utf8Length, writeUtf8 } from './resp/text.ts'
export {
  Attributed,
  BigNumber,
  Double,
  ErrorReply,
  MapReply,
  PushReply,
  type RespValue,
  SetReply,
  Verbatim,
} from './resp/value.ts'
export { type FieldFailure, FieldReader, type NumberRange } from './rules/field-reader.ts'
export { compilePattern, type KeyMatcher } from './rules/key-matcher.ts'
export { type KnownRules, knownRules } from './rules/known-rules.ts'
export { compileLinearRegex } from './rules/linear-regex.ts'
export { parsePattern } from './rules/parse-pattern.ts'
export { parseRule } from './rules/parse-rule.ts'
export { parseStrategy } from './rules/parse-strategy.ts'
export { patternText } from './rules/pattern-text.ts'
export { RegexError } from './rules/regex-error.ts'
export {
  type HeatMeasure,
  type KeyPattern,
  type Rule,
  type RuleLevel,
  ruleDefaults,
  type StrategyTemplate,
} from './rules/rule.ts'
export { RuleInvalidError } from './rules/rule-error.ts'
export { type RuleScope, RuleSet } from './rules/rule-set.ts'
export {
  settingsHelp,
  settingsReference,
  settingsSchema,
} from './settings/describe-settings.ts'
export { otlpSettings } from './settings/otlp-settings.ts'
export {
  type ResolvedSetting,
  type ResolvedSettings,
  resolveSettings,
  type SettingInput,
  type SettingSource,
} from './settings/resolve-settings.ts'
export {
  choiceOf,
  fileSetting,
  flagOf,
  onOrOff,
  portNumber,
  type Setting,
  type SettingKind,
  type SettingTable,
  text,
  textList,
  variableOf,
  variablesOf,
  wholeFrom,
} from './settings/setting.ts'
export { readClusterSlots, type SlotNode, type SlotRange } from './slots/cluster-slots.ts'
export { keySlot, keySlotOfBytes, slotCount } from './slots/key-slot.ts'
export { SlotMap } from './slots/slot-map.ts'
export { isKnownEntry, isKnownStrategy } from './strategy/known-strategy.ts'
export {
  defaultLocalCache,
  type ExpireStrategy,
  entryId,
  type LocalCacheStrategy,
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
  type InvalidatedKey,
  type Invalidation,
  type JsonFrameType,
  type JsonPayloads,
  type KeyEffect,
  maxFrameHeadBytes,
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
