// `@firebreak/core/metrics`: metric families and the ways to export them.
export type { HistogramPoint, MetricFamily, MetricLabels, MetricPoint } from './metric-family.ts'
export {
  type BatchResultLike,
  type MeterLike,
  type ObservableLike,
  observeWithMeter,
} from './observe-with-meter.ts'
export { metricsSignal, OtlpExporter, type OtlpExporterOptions, type OtlpSignal } from './otlp-exporter.ts'
export { type OtlpOptions, type ResolvedOtlpOptions, resolveOtlpOptions } from './otlp-options.ts'
export {
  attributesOf,
  nanoseconds,
  type OtlpAttribute,
  type OtlpHead,
  type OtlpHistogram,
  type OtlpMetric,
  type OtlpNumber,
  type OtlpRequest,
  otlpRequest,
} from './otlp-request.ts'
export { type OtlpVariables, otlpVariables, parsePairs, readOtlpVariables } from './otlp-variables.ts'
export { prometheusText } from './prometheus-text.ts'
