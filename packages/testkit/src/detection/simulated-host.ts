import { VarintWriter, writeReportEntry } from '@firebreak/core'
import { AccessCounter, ThresholdSampler } from '@firebreak/core/heat'

/** The service and the Redis cluster of all simulated hosts. */
export const replayedService = 'service'
const redisClusterId = 'cluster'

/** One process with a shield: counts, samples and reports. */
export class SimulatedHost {
  readonly counter = new AccessCounter()
  readonly #name: string
  readonly #sampler: ThresholdSampler

  constructor(number: number, random: () => number) {
    this.#name = `host-${number}`
    this.#sampler = new ThresholdSampler(random)
  }

  /** The report of the interval; undefined if nothing happened. Keys in the table are sampled with their own factor. */
  flush(
    atMs: number,
    factor: number,
    hotFactor: number,
    table: ReadonlySet<string>,
  ): { readonly bytes: Uint8Array; readonly rows: number } | undefined {
    const drain = this.counter.swap()!
    if (drain.totalCount === 0) return undefined
    const entries = new VarintWriter(4096)
    let rows = 0
    const sampler = this.#sampler
    const visit = (key: string, accesses: number, writes: number, bytes: number) => {
      sampler.factor = table.has(key) ? hotFactor : factor
      if (!sampler.sample(accesses, writes, bytes)) return
      writeReportEntry(entries, key, sampler.count, sampler.writes, sampler.bytes)
      rows++
    }
    while (drain.take(1024, visit));
    const report = new VarintWriter(entries.length + 64)
    report.varint(Math.floor(atMs))
    report.varint(Math.floor(atMs))
    for (const text of [replayedService, this.#name, this.#name]) report.text(text)
    report.varint(1)
    report.text(redisClusterId)
    report.varint(drain.totalCount)
    report.varint(rows)
    report.raw(entries.finish())
    return { bytes: report.finish(), rows }
  }
}
