import { OtlpExporter, type OtlpExporterOptions, type ResolvedOtlpOptions } from '@firebreak/core/metrics'
import type { HubCore } from '../hub-core.ts'
import { DecisionTraces } from './decision-traces.ts'

/** How soon traces are visible: users look at them while the key is hot. */
const tracesEveryMs = 5000

/** Pushes a hub's decisions as traces; undefined if not configured. */
export function startTraces(
  { journal, options }: HubCore,
  otlp: ResolvedOtlpOptions,
  push: Pick<OtlpExporterOptions, 'resource' | 'logger' | 'timers'>,
): OtlpExporter | undefined {
  const { tracesEndpoint: endpoint } = otlp
  if (endpoint === undefined) return undefined
  const signal = new DecisionTraces(options.runtime)
  journal.onRecord = (event) => signal.record(event)
  const intervalMs = Math.min(otlp.intervalMs, tracesEveryMs)
  const exporter = new OtlpExporter({ ...push, otlp: { ...otlp, endpoint, intervalMs }, signal })
  exporter.start()
  return exporter
}
