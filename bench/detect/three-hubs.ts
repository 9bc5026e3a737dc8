import {
  AccessCounter,
  ByteWriter,
  hotSamplingFactor,
  maxSamplingFactor,
  parseRule,
  ThresholdSampler,
  writeReportEntry,
} from '@firebreak/core'
import { HubCore, openRedisStore } from '@firebreak/hub'
import { startRedis, type Trace, waitFor } from '@firebreak/testkit'

export interface ThreeHubsOptions {
  readonly hosts: number
  readonly threshold: number
  /** How many windows it plays. */
  readonly windows: number
}

export interface ThreeHubsResult {
  readonly wanted: number
  readonly found: number
  readonly falseAlarms: number
  readonly rowsPerHostAndFlush: number
  readonly meanHotKeys: number
  /** Windows that were judged, and those that were not because this process came late itself. */
  readonly judged: number
  readonly late: number
}

const hubCount = 3
const slices = 10
/**
 * Redis' clock runs as it runs, and three hubs, a Redis and a fleet share this machine: everything is played at half the
 * speed, with a window twice as long. All counts in a window are the same.
 */
const slowness = 2
const windowMs = 5000 * slowness
const intervalMs = windowMs / slices
const accessesPerMs = 100 / slowness
/**
 * The fleet and three hubs are this one process. Where the machine did not let it run for so long, hosts reported late what
 * they had counted in time, and what is true of an interval is not what a hub can know at its end.
 */
const maxLagMs = intervalMs / 4

/** What truly happened: accesses by key and interval, by the time at which they were counted. */
class Truth {
  readonly #counts: Map<number, number>[] = []
  readonly #heats = new Map<number, number>()
  /** For each interval, the heat of the window that ends with it. */
  readonly windows: ReadonlyMap<number, number>[] = []

  add(id: number): void {
    const now = this.#counts.at(-1)!
    now.set(id, (now.get(id) ?? 0) + 1)
  }

  /** Ends an interval, where there is one, and begins the next. */
  next(): void {
    for (const [id, count] of this.#counts.at(-1) ?? []) this.#heats.set(id, (this.#heats.get(id) ?? 0) + count)
    for (const [id, count] of this.#counts.at(-1 - slices) ?? []) this.#heats.set(id, this.#heats.get(id)! - count)
    if (this.#counts.length > 0) this.windows.push(new Map([...this.#heats].filter(([, heat]) => heat >= 10)))
    this.#counts.push(new Map())
  }
}

/** Plays a trace in real time to three hubs on one Redis; each host reports to one of them. */
export async function detectWithThreeHubs(trace: Trace, options: ThreeHubsOptions): Promise<ThreeHubsResult> {
  const { hosts, threshold, windows } = options
  const redis = await startRedis()
  const cores: HubCore[] = []
  try {
    for (let nth = 0; nth < hubCount; nth++) {
      const core = await HubCore.open(await openRedisStore(redis.url), { hubId: `hub-${nth}`, loadOf: () => 0 })
      core.start()
      cores.push(core)
    }
    const rule = parseRule({ id: 'hot', glob: '*', threshold, windowMs, minHoldMs: intervalMs, strategy: 'Observe' })
    await cores[0]!.putRule(rule, 'bench')
    await waitFor(() => cores.every((core) => core.rules().rules.length === 1 && core.hubCount === hubCount))
    const idOf = new Map(trace.keys.map((key, id) => [key, id]))
    const fleet = Array.from({ length: hosts }, (_, number) => new Host(number, cores[number % hubCount]!))
    const factor = maxSamplingFactor(threshold)
    const hotFactor = hotSamplingFactor(factor, rule.levels)
    const truth = new Truth()
    // Hot in every hub, and in any of them, at the end of each interval.
    const everywhere: Set<number>[] = []
    const anywhere: Set<number>[] = []
    let accesses = 0
    let flushes = 0
    let rows = 0
    const startedAt = performance.now()
    const intervals = slices * windows
    let passedMs = 0
    // How late this process was, at most, in each interval.
    const lagsMs: number[] = []
    while (passedMs < intervals * intervalMs) {
      const nowMs = performance.now() - startedAt
      for (; passedMs < Math.min(nowMs, intervals * intervalMs); passedMs++) {
        if (passedMs % intervalMs === 0) {
          if (passedMs > 0) look(cores, idOf, everywhere, anywhere)
          truth.next()
          lagsMs.push(0)
        }
        lagsMs.push(Math.max(lagsMs.pop()!, nowMs - passedMs))
        for (let nth = 0; nth < accessesPerMs; nth++) {
          const id = trace.ids[accesses++ % trace.ids.length]!
          truth.add(id)
          fleet[Math.floor(Math.random() * hosts)]!.counter.add(trace.keys[id]!)
        }
        // Host h flushes h / hosts into each interval.
        const due = Math.floor(((passedMs % intervalMs) * hosts) / intervalMs)
        const end = Math.floor((((passedMs % intervalMs) + 1) * hosts) / intervalMs)
        for (let host = due; host < end; host++) {
          const sent = fleet[host]!.flush(factor, hotFactor)
          if (sent === undefined) continue
          flushes++
          rows += sent
        }
      }
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    truth.next()
    return { ...judge(truth, everywhere, anywhere, lagsMs, threshold), rowsPerHostAndFlush: rows / flushes }
  } finally {
    await Promise.all(cores.map((core) => core.close()))
    await redis.stop()
  }
}

function look(
  cores: readonly HubCore[],
  idOf: ReadonlyMap<string, number>,
  everywhere: Set<number>[],
  anywhere: Set<number>[],
): void {
  const tables = cores.map((core) => new Set([...core.delivery.entries()].map(({ key }) => idOf.get(key)!)))
  anywhere.push(new Set(tables.flatMap((table) => [...table])))
  everywhere.push(new Set([...tables[0]!].filter((id) => tables.every((table) => table.has(id)))))
}

/** As in `replayDetection`: hot at the end of the window or an interval later; a key that became hot was near it. */
function judge(
  truth: Truth,
  everywhere: readonly Set<number>[],
  anywhere: readonly Set<number>[],
  lagsMs: readonly number[],
  threshold: number,
): Omit<ThreeHubsResult, 'rowsPerHostAndFlush'> {
  let judged = 0
  let late = 0
  let wanted = 0
  let found = 0
  let falseAlarms = 0
  for (let end = 0; end + 1 < everywhere.length; end++) {
    if (lagsMs.slice(Math.max(0, end - 2), end + 2).some((lagMs) => lagMs > maxLagMs)) {
      late++
      continue
    }
    judged++
    for (const [id, heat] of truth.windows[end]!) {
      if (heat < 1.5 * threshold) continue
      wanted++
      if (everywhere[end]!.has(id) || everywhere[end + 1]!.has(id)) found++
    }
    for (const id of anywhere[end]!) {
      if (anywhere[end - 1]?.has(id)) continue
      const near = [-2, -1, 0, 1].map((step) => truth.windows[end + step]?.get(id) ?? 0)
      if (Math.max(...near) < 0.67 * threshold) falseAlarms++
    }
  }
  const meanHotKeys = everywhere.reduce((sum, { size }) => sum + size, 0) / everywhere.length
  return { wanted, found, falseAlarms, meanHotKeys, judged, late }
}

/** A process with a shield, on one of the hubs. */
class Host {
  readonly counter = new AccessCounter()
  readonly #core: HubCore
  readonly #name: string
  readonly #sampler = new ThresholdSampler()
  #sequence = 0

  constructor(number: number, core: HubCore) {
    this.#name = `host-${number}`
    this.#core = core
  }

  /** Reports the interval; its rows, undefined where nothing happened. */
  flush(factor: number, hotFactor: number): number | undefined {
    const drain = this.counter.swap()!
    if (drain.totalCount === 0) return undefined
    const view = this.#core.delivery.view('service')
    const entries = new ByteWriter(2048)
    let rows = 0
    const sampler = this.#sampler
    const visit = (key: string, count: number, writes: number, bytes: number) => {
      sampler.factor = view.has('cluster', key) ? hotFactor : factor
      if (!sampler.sample(count, writes, bytes)) return
      writeReportEntry(entries, key, sampler.count, sampler.writes, sampler.bytes)
      rows++
    }
    while (drain.take(1024, visit));
    const now = Math.floor(this.#core.now())
    const report = new ByteWriter(entries.length + 64)
    report.varint(now)
    report.varint(now)
    for (const text of ['service', this.#name, this.#name]) report.text(text)
    report.varint(1)
    report.text('cluster')
    report.varint(drain.totalCount)
    report.varint(rows)
    report.raw(entries.finish())
    this.#core.collector.collectBinary(report.finish(), 0, ++this.#sequence)
    return rows
  }
}
