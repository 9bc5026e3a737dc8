// `@firebreak/core/metrics`: Families of metrics, and the ways they go out.
export type { HistogramPoint, MetricFamily, MetricLabels, MetricPoint } from './metric-family.ts'
export {
  type BatchResultLike,
  type MeterLike,
  type ObservableLike,
  observeWithMeter,
} from './observe-with-meter.ts'
export { OtlpExporter, type OtlpExporterOptions } from './otlp-exporter.ts'
export { type OtlpOptions, type ResolvedOtlpOptions, resolveOtlpOptions } from './otlp-options.ts'
export {
  type OtlpAttribute,
  type OtlpHistogram,
  type OtlpMetric,
  type OtlpNumber,
  type OtlpRequest,
  otlpRequest,
} from './otlp-request.ts'
export { type OtlpVariables, otlpVariables, parsePairs, readOtlpVariables } from './otlp-variables.ts'
export { prometheusText } from './prometheus-text.ts'
