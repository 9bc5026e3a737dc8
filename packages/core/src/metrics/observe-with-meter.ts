import type { MetricFamily, MetricLabels } from './metric-family.ts'

/** An instrument that is polled for its values; here it is only passed back to the meter. */
export interface ObservableLike {
  addCallback(callback: (result: { observe(value: number): void }) => void): void
}

/** What a callback reports values to. */
export interface BatchResultLike {
  observe(instrument: ObservableLike, value: number, attributes?: MetricLabels): void
}

type BatchCallback = (result: BatchResultLike) => void

/** The part of `Meter` of `@opentelemetry/api` that we need; nothing is imported from that package. */
export interface MeterLike {
  createObservableGauge(name: string, options?: { description?: string }): ObservableLike
  createObservableCounter(name: string, options?: { description?: string }): ObservableLike
  addBatchObservableCallback(callback: BatchCallback, instruments: ObservableLike[]): void
  removeBatchObservableCallback(callback: BatchCallback, instruments: ObservableLike[]): void
}

/**
 * Registers an instrument for each family with an application's own meter; all are read together whenever the meter
 * collects. The returned function unregisters them. Histograms have no observable form, so only their count and sum are
 * reported.
 */
export function observeWithMeter(meter: MeterLike, read: () => readonly MetricFamily[]): () => void {
  const instruments = new Map<string, ObservableLike>()
  for (const { kind, name, help } of read().flatMap(observables)) {
    const options = { description: help }
    const instrument =
      kind === 'counter' ? meter.createObservableCounter(name, options) : meter.createObservableGauge(name, options)
    instruments.set(name, instrument)
  }
  const callback: BatchCallback = (result) => {
    for (const { name, points } of read().flatMap(observables)) {
      const instrument = instruments.get(name)
      if (instrument === undefined) continue
      for (const { value, labels } of points) result.observe(instrument, value, labels)
    }
  }
  const all = [...instruments.values()]
  meter.addBatchObservableCallback(callback, all)
  return () => meter.removeBatchObservableCallback(callback, all)
}

function observables(family: MetricFamily): Exclude<MetricFamily, { kind: 'histogram' }>[] {
  if (family.kind !== 'histogram') return [family]
  const part = (of: 'count' | 'sum') => ({
    kind: 'counter' as const,
    name: `${family.name}_${of}`,
    help: `${family.help}: ${of}`,
    points: family.points.map((point) => ({ labels: point.labels, value: point[of] })),
  })
  return [part('count'), part('sum')]
}
