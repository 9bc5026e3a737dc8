import { BinaryReportCursor, VarintWriter, writeReportEntry } from '@firebreak/core'
import { AccessCounter, HeatWindow } from '@firebreak/core/heat'
import { loadTrace } from '@firebreak/testkit'
import { Bench, interleaved, isQuick, median, medianRatio, rounds, say } from './harness/bench.ts'
import { CountingIngest } from './heat/counting-ingest.ts'
import { HubIngest } from './heat/hub-ingest.ts'

/**
 * The hub's ingest and the shield's counter, each against the obvious one on a `Map`.
 *
 * - `ingest-…`: binary reports of 500 entries, 1 M distinct keys of 24 bytes, 10 slices, decoded, checked and counted by
 *   the hub's own `CountedKeys`, near keys told apart; 5 % of the entries are of keys over the threshold. The rival
 *   decodes the same bytes with the same reader, makes the key a string and keeps `{ ring, total }` in a `Map`. Speed is
 *   by CPU time of this process, garbage collection on other threads included.
 * - `hub-…`: the same reports through a whole hub but for its network: beside the counting, clock offsets, duplicates,
 *   rules by service, near keys, hosts, slots, totals, decisions, the table.
 * - `threads-2-…`: the same hub with two ingest threads. `threads-2-main-relief`: how many times less CPU the main thread
 *   takes for an entry; `threads-2-vs-none`: entries by wall time, which needs three free cores to mean anything.
 * - `growth-…`: both grow to 10 M keys (`--quick`: 3 M); a pause is the smaller of wall and CPU time of 256 insertions.
 *   By hand past what a `Map` can hold: `FIREBREAK_KEYS=20000000 FIREBREAK_ONLY=growth npm run -s bench -- heat`.
 * - `count-vs-map`: accesses of `orm-night` in intervals of 50,000, each read to its end.
 */
const bench = new Bench('heat')
const slices = 10
const windowMs = 5000
const keyLength = 24
const keyOf = (id: number) => `item:detail:${String((id * 2_654_435_761) % 4_294_967_296).padStart(12, '0')}`

function seeded(seed: number): () => number {
  let state = seed
  return () => {
    state ^= state << 13
    state ^= state >>> 17
    state ^= state << 5
    return (state >>> 0) / 2 ** 32
  }
}

/** What a hub on a `Map` keeps of a key. */
interface MapEntry {
  slice: number
  total: number
  readonly ring: Uint32Array
}

/** The rival: a hub that keeps its windows in a `Map` by string, as one writes it first. */
class MapHub {
  readonly entries = new Map<string, MapEntry>()
  readonly #threshold: number
  crossings = 0

  constructor(threshold: number) {
    this.#threshold = threshold
  }

  take(bytes: Buffer, nowMs: number): number {
    BinaryReportCursor.survey(bytes)
    const cursor = new BinaryReportCursor(bytes)
    const slice = Math.floor(nowMs / (windowMs / slices))
    let taken = 0
    while (cursor.nextSection()) {
      while (cursor.nextEntry()) {
        this.add(bytes.toString('latin1', cursor.keyStart, cursor.keyEnd), cursor.count, slice)
        taken++
      }
    }
    return taken
  }

  add(key: string, count: number, slice: number): void {
    let entry = this.entries.get(key)
    if (entry === undefined) {
      entry = { slice, total: 0, ring: new Uint32Array(slices) }
      this.entries.set(key, entry)
    }
    for (let passed = Math.max(entry.slice, slice - slices) + 1; passed <= slice; passed++) {
      entry.total -= entry.ring[passed % slices]!
      entry.ring[passed % slices] = 0
    }
    entry.slice = slice
    entry.ring[slice % slices]! += count
    if (entry.total < this.#threshold && entry.total + count >= this.#threshold) this.crossings++
    entry.total += count
  }
}

function cpuMs(since?: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(since)
  return (user + system) / 1000
}

const perReport = 500
const hotKeys = 350

/**
 * Reports of 500 entries: first every key once, then one entry in twenty of 350 hot keys and the others log-uniform over
 * the ranks from 4,000 on, which is Zipf's law without its head: so it is known which entries are hot.
 */
function makeReports(distinct: number, entryCount: number): Buffer[] {
  const random = seeded(9)
  const reports: Buffer[] = []
  // All of it happens in one and a half windows: slices rotate, and hardly a key is forgotten.
  const reportMs = (1.5 * windowMs * perReport) / (distinct + entryCount)
  for (let first = 0; first < distinct + entryCount; first += perReport) {
    const writer = new VarintWriter(perReport * (keyLength + 3))
    const atMs = Math.floor(reports.length * reportMs)
    writer.varint(atMs)
    writer.varint(atMs)
    for (const text of ['shop', `host-${reports.length % 100}`, 'one']) writer.text(text)
    writer.varint(1)
    writer.text('cache')
    writer.varint(perReport * 2)
    writer.varint(perReport)
    for (let nth = first; nth < first + perReport; nth++) {
      const isHot = nth % 20 === 0
      const rank = isHot ? Math.floor(random() * hotKeys) : Math.floor(distinct ** (0.6 + 0.4 * random()))
      const id = nth < distinct ? nth : (Math.imul(rank, 2_654_435_761) >>> 0) % distinct
      writeReportEntry(writer, keyOf(id), 1 + (Math.imul(nth, 2_654_435_761) >>> 30), 0, 0)
    }
    reports.push(Buffer.from(writer.finish()))
  }
  return reports
}

async function ingest(): Promise<void> {
  const distinct = 1_000_000
  const entryCount = rounds(1_000_000, 3_000_000)
  say(`ingest: ${entryCount} entries over ${distinct} keys`)
  const reports = makeReports(distinct, entryCount)
  const filling = distinct / perReport
  const reportMs = (1.5 * windowMs) / reports.length
  // Some 0.8 of what a hot key gets in a window, and well above what any other does.
  const threshold = (entryCount / 20 / hotKeys) * 1.5
  const run = (take: (report: Buffer, nowMs: number) => number) => {
    globalThis.gc?.()
    let taken = 0
    let usage = process.cpuUsage()
    for (const [nth, report] of reports.entries()) {
      if (nth === filling) usage = process.cpuUsage()
      const count = take(report, nth * reportMs)
      if (nth >= filling) taken += count
    }
    return (taken / cpuMs(usage)) * 1000
  }
  const speeds = await interleaved(rounds(2, 3), {
    dict() {
      const counting = new CountingIngest(threshold, windowMs)
      const speed = run((report, nowMs) => counting.take(report, nowMs))
      say(`  dict ${Math.round(speed)}/s, ${counting.size} keys, ${counting.nearCount} near`)
      return speed
    },
    async hub() {
      const hub = await HubIngest.open(threshold, windowMs)
      const speed = run((report, nowMs) => hub.take(report, nowMs))
      const { engine, delivery } = hub.core
      say(`  hub  ${Math.round(speed)}/s, ${engine.size} keys, ${delivery.size} hot, ${engine.nearSize} near`)
      await hub.close()
      return speed
    },
    map() {
      const hub = new MapHub(threshold)
      const speed = run((report, nowMs) => hub.take(report, nowMs))
      say(`  map  ${Math.round(speed)}/s, ${hub.entries.size} keys, ${hub.crossings} crossings`)
      return speed
    },
  })
  bench.report({ id: 'ingest-entries-per-second', value: median(speeds.dict), unit: 'entries/s of CPU' })
  bench.report({ id: 'hub-entries-per-second', value: median(speeds.hub), unit: 'entries/s of CPU' })
  bench.report({ id: 'hub-vs-map', ratio: medianRatio(speeds.hub, speeds.map), of: 'whole hub', to: 'Map' })
  bench.report({ id: 'ingest-vs-map', ratio: medianRatio(speeds.dict, speeds.map), of: 'dict', to: 'Map' })
}

async function threads(): Promise<void> {
  const distinct = 1_000_000
  const entryCount = 1_000_000
  say(`threads: ${entryCount} entries over ${distinct} keys`)
  const reports = makeReports(distinct, entryCount)
  const reportMs = (1.5 * windowMs) / reports.length
  const threshold = (entryCount / 20 / hotKeys) * 1.5
  const mainCpu: Record<number, number[]> = { 0: [], 2: [] }
  const run = async (count: 0 | 2) => {
    const hub = await HubIngest.open(threshold, windowMs, count)
    await hub.settled()
    globalThis.gc?.()
    let usage = process.threadCpuUsage()
    let started = performance.now()
    let taken = 0
    for (const [nth, report] of reports.entries()) {
      if (nth === distinct / perReport) {
        await hub.settled()
        usage = process.threadCpuUsage()
        started = performance.now()
        taken = 0
      }
      taken += await hub.feed(report, nth * reportMs)
      // As a socket would: the loop turns between some reports.
      if (nth % 20 === 0) await new Promise(setImmediate)
    }
    await hub.settled()
    const seconds = (performance.now() - started) / 1000
    const { user, system } = process.threadCpuUsage(usage)
    mainCpu[count]!.push(taken / ((user + system) / 1e6))
    say(`  ${count} threads: ${Math.round(taken / seconds)}/s, ${hub.core.delivery.size} hot`)
    await hub.close()
    return taken / seconds
  }
  const speeds = await interleaved(rounds(1, 3), { two: () => run(2), none: () => run(0) })
  bench.report({
    id: 'threads-2-main-relief',
    ratio: medianRatio(mainCpu[2]!, mainCpu[0]!),
    of: 'entries by CPU of the main thread, 2 threads',
    to: 'none',
  })
  bench.report({
    id: 'threads-2-vs-none',
    ratio: medianRatio(speeds.two, speeds.none),
    of: 'entries/s, 2 threads',
    to: 'none',
  })
}

/** The longest pause of 256 operations while `count` keys are added: the smaller of wall and CPU time. */
function longestPause(count: number, add: (blob: Buffer, start: number) => void): number {
  const blob = Buffer.allocUnsafe(keyLength * 65_536)
  let longest = 0
  for (let first = 0; first < count; first += 65_536) {
    for (let nth = 0; nth < 65_536; nth++) blob.write(keyOf(first + nth), nth * keyLength, 'latin1')
    const end = Math.min(65_536, count - first)
    for (let from = 0; from < end; from += 256) {
      const usage = process.cpuUsage()
      const started = performance.now()
      for (let nth = from; nth < Math.min(from + 256, end); nth++) add(blob, nth * keyLength)
      const wallMs = performance.now() - started
      if (wallMs > longest) longest = Math.max(longest, Math.min(wallMs, cpuMs(usage)))
    }
  }
  return longest
}

async function growth(): Promise<void> {
  const count = Number(process.env['FIREBREAK_KEYS'] ?? rounds(3_000_000, 10_000_000))
  say(`growth: ${count} keys`)
  const before = await settledMemory()
  const rules = { windowsMs: [windowMs], match: () => 0 }
  const window = new HeatWindow({ rules, startMs: 0, maxBytes: 8 * 2 ** 30, maxKeys: count })
  const { dict } = window
  const dictPause = longestPause(count, (blob, start) => {
    const end = start + keyLength
    window.add(blob, start, end, 1, dict.hash(blob, start, end))
  })
  if (window.size !== count) throw new Error(`${window.size} keys instead of ${count}`)
  const bytesPerKey = ((await settledMemory()) - before) / count
  say(`  dict ${dictPause.toFixed(1)} ms, ${bytesPerKey.toFixed(1)} bytes a key`)
  const map = new Map<string, number>()
  let mapEnd = ''
  const mapPause = longestPause(count, (blob, start) => {
    if (mapEnd !== '') return
    const key = blob.toString('latin1', start, start + keyLength)
    try {
      map.set(key, (map.get(key) ?? 0) + 1)
    } catch (error) {
      mapEnd = `, and ended at ${map.size} keys: ${(error as Error).message}`
    }
  })
  const mapNote = `Map: ${mapPause.toFixed(0)} ms${mapEnd}`
  say(`  ${mapNote}`)
  bench.report({ id: 'growth-max-pause-ms', value: dictPause, unit: 'ms', note: `to ${count} keys; ${mapNote}` })
  bench.report({ id: 'growth-pause-vs-map', ratio: mapPause / dictPause, of: 'Map', to: 'dict' })
  bench.report({ id: 'bytes-per-key', value: bytesPerKey, unit: 'bytes', note: `at ${count} keys, window included` })
}

/** Memory in use, once what earlier parts left behind is really gone. */
async function settledMemory(): Promise<number> {
  for (let round = 0; round < 4; round++) {
    globalThis.gc?.()
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  return memory()
}

function memory(): number {
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

async function counting(): Promise<void> {
  const { ids, keys } = loadTrace('orm-night')
  const accesses = Math.min(ids.length, rounds(1_500_000, 5_000_000))
  const interval = 50_000
  say(`counting: ${accesses} accesses`)
  let longestStep = 0
  let sum = 0
  const visit = (_: string, count: number) => {
    sum += count
  }
  // One for all rounds, as a process has one.
  const counter = new AccessCounter()
  const speeds = await interleaved(rounds(5, 15), {
    counter() {
      globalThis.gc?.()
      const usage = process.cpuUsage()
      for (let first = 0; first < accesses; first += interval) {
        const end = Math.min(accesses, first + interval)
        for (let nth = first; nth < end; nth++) counter.add(keys[ids[nth]!]!)
        const drain = counter.swap()!
        while (drain.take(4096, visit));
      }
      return accesses / cpuMs(usage)
    },
    map() {
      globalThis.gc?.()
      const usage = process.cpuUsage()
      for (let first = 0; first < accesses; first += interval) {
        const counts = new Map<string, number>()
        const end = Math.min(accesses, first + interval)
        for (let nth = first; nth < end; nth++) {
          const key = keys[ids[nth]!]!
          counts.set(key, (counts.get(key) ?? 0) + 1)
        }
        for (const [key, count] of counts) visit(key, count)
      }
      return accesses / cpuMs(usage)
    },
  })
  say(`  counter ${median(speeds.counter).toFixed(0)}, map ${median(speeds.map).toFixed(0)} accesses/ms; ${sum} in all`)
  bench.report({
    id: 'count-vs-map',
    ratio: medianRatio(speeds.counter, speeds.map),
    of: 'counter',
    to: 'Map.get + set',
  })

  // One interval as large as an interval gets, read in steps.
  const before = await settledMemory()
  const full = new AccessCounter()
  for (let id = 0; id < 65_536; id++) full.add(keys[id % keys.length]!, false, 10)
  const counterBytes = ((await settledMemory()) - before) / full.keyCount
  const timed = <T>(step: () => T): T => {
    const usage = process.cpuUsage()
    const started = performance.now()
    const result = step()
    longestStep = Math.max(longestStep, Math.min(performance.now() - started, cpuMs(usage)))
    return result
  }
  const drain = timed(() => full.swap()!)
  while (timed(() => drain.take(2048, visit)));
  bench.report({
    id: 'flush-max-step-ms',
    value: longestStep,
    unit: 'ms',
    note: '65,536 keys, 2,048 a step, the swap too',
  })
  bench.report({ id: 'counter-bytes-per-key', value: counterBytes, unit: 'bytes', note: 'at 65,536 keys' })
}

say(isQuick ? 'quick run' : 'whole run')
// The counter first: it stands for a client's process, whose heap is not full of a hub's keys.
const only = process.env['FIREBREAK_ONLY']
if (only === undefined || only === 'counting') await counting()
if (only === undefined || only === 'ingest') await ingest()
if (only === undefined || only === 'threads') await threads()
if (only === undefined || only === 'growth') await growth()
bench.done()
