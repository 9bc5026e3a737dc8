import {
  type HeatLetter,
  type HistoryAmounts,
  type HistoryRow,
  type HistorySubject,
  savedReads,
  type TrafficPoint,
} from '@firebreak/core'
import { letterOrder } from './down-sampler.ts'
import type { HeatHistory } from './heat-history.ts'
import { type BlockRow, type RowKind, trafficFields } from './history-block.ts'
import { eachPoint, isWanted, type Period, prefixOf, type RowFilter } from './past.ts'

export type HistorySort = 'accesses' | 'peak' | 'saved' | 'hot' | 'bytes' | 'writes' | 'name'

export interface HistoryQuestion {
  readonly by: HistorySubject
  readonly period: Period
  readonly filter: RowFilter
  readonly sort: HistorySort
  readonly limit: number
  /** From 1. */
  readonly page: number
}

export interface HistoryFound {
  readonly rows: readonly HistoryRow[]
  readonly total: number
  readonly totals: HistoryAmounts
  readonly traffic: readonly TrafficPoint[]
}

/** Names that one query may collect; later ones are lumped together. */
const maxNames = 20_000

const kindOf: Readonly<Record<HistorySubject, RowKind>> = {
  key: 'key',
  prefix: 'key',
  service: 'service',
  node: 'node',
  slot: 'slot',
}

/** Reads series from the history: the sums over all hubs, point by point. */
export async function queryHistory(
  history: Pick<HeatHistory, 'blocks'>,
  question: HistoryQuestion,
): Promise<HistoryFound> {
  const { by, period, filter, sort, limit, page } = question
  const gathered = new Map<string, Gathered>()
  const traffic = trafficFields.map(() => new Array<number>(period.points).fill(0))
  let keyBytes = 0
  await eachPoint(history, period, {
    traffic: (amounts, point) => addAll(traffic, amounts, point),
    rest: ([, , bytes]) => {
      keyBytes += bytes!
    },
    row: (row, step, point) => {
      if (row.kind === 'key') keyBytes += row.bytes[step]!
      if (row.kind !== kindOf[by] || row.accesses[step] === 0 || !isWanted(row, filter)) return
      gather(gathered, by, row, period)?.add(row, step, point)
    },
  })
  const sumOf = (field: number) => traffic[field]!.reduce((sum, amount) => sum + amount, 0)
  const accesses = trafficFields.reduce((sum, _, field) => sum + sumOf(field), 0)
  const all = [...gathered.values()].map((row) => row.view(accesses, period))
  all.sort((a, b) => orderOf(b, sort) - orderOf(a, sort) || (a.name < b.name ? -1 : 1))
  return {
    rows: all.slice((page - 1) * limit, page * limit),
    total: all.length,
    totals: { accesses, writes: sumOf(4), bytes: keyBytes, saved: savedReads({ local: sumOf(1), limited: sumOf(3) }) },
    traffic: Array.from({ length: period.points }, (_, point) => trafficPoint(traffic, point, period)),
  }
}

/** Adds one number to the same position of each list. */
function addAll(lists: readonly number[][], amounts: readonly number[], place: number): void {
  for (const [index, amount] of amounts.entries()) lists[index]![place]! += amount
}

function trafficPoint(traffic: readonly number[][], point: number, { from, resolutionMs }: Period): TrafficPoint {
  const [redis, local, copies, limited, writes] = traffic.map((list) => perSecond(list[point]!, resolutionMs)) as [
    number,
    number,
    number,
    number,
    number,
  ]
  return { at: from + point * resolutionMs, redis, local, copies, limited, writes }
}

function gather(
  gathered: Map<string, Gathered>,
  by: HistorySubject,
  row: BlockRow,
  { points }: Period,
): Gathered | undefined {
  const name = by === 'prefix' ? prefixOf(row.name) : row.name
  const id = `${row.redisClusterId}\u0000${name}`
  let found = gathered.get(id)
  if (found === undefined) {
    if (gathered.size >= maxNames) return undefined
    found = new Gathered(name, row, by, points)
    gathered.set(id, found)
  }
  return found
}

/** One row of the answer while it is being summed. */
class Gathered {
  readonly #name: string
  readonly #first: BlockRow
  readonly #by: HistorySubject
  readonly #accesses: Float64Array
  readonly #saved: Float64Array
  readonly #letters: HeatLetter[]
  readonly #services = new Set<string>()
  readonly #ruleIds = new Set<string>()
  /** Accesses of the busiest second of each point; over several hubs, an estimate from their counts. */
  readonly #peaks: Float64Array
  readonly #hotSeconds: Float64Array
  #writes = 0
  #bytes = 0

  constructor(name: string, first: BlockRow, by: HistorySubject, points: number) {
    this.#name = name
    this.#first = first
    this.#by = by
    this.#accesses = new Float64Array(points)
    this.#saved = new Float64Array(points)
    this.#peaks = new Float64Array(points)
    this.#hotSeconds = new Float64Array(points)
    this.#letters = new Array<HeatLetter>(points).fill('.')
  }

  add(row: BlockRow, step: number, point: number): void {
    this.#accesses[point]! += row.accesses[step]!
    this.#saved[point]! += row.saved[step]!
    this.#writes += row.writes[step]!
    this.#bytes += row.bytes[step]!
    this.#peaks[point] = Math.max(this.#peaks[point]!, row.peak[step]!)
    this.#hotSeconds[point]! += row.hot[step]!
    const letter = row.letters[step]!
    if (letterOrder.indexOf(letter) > letterOrder.indexOf(this.#letters[point]!)) this.#letters[point] = letter
    for (const service of row.services) this.#services.add(service)
    for (const ruleId of row.ruleIds) this.#ruleIds.add(ruleId)
  }

  view(allAccesses: number, { from, resolutionMs }: Period): HistoryRow {
    const sum = (list: Float64Array) => list.reduce((total, amount) => total + amount, 0)
    const accesses = sum(this.#accesses)
    const pointSeconds = resolutionMs / 1000
    // For coarse points it is unknown what hubs saw in the same second: their mean is a lower bound for the peak.
    const peaks = this.#peaks.map((peak, point) => Math.max(peak, this.#accesses[point]! / pointSeconds))
    const peakPoint = peaks.reduce((best, peak, point) => (peak > peaks[best]! ? point : best), 0)
    const isKey = this.#by === 'key'
    // Hubs that share a store each record that the key was hot: capped at the length of the point.
    const hotSeconds = this.#hotSeconds.reduce((total, seconds) => total + Math.min(seconds, pointSeconds), 0)
    return {
      name: this.#name,
      redisClusterId: this.#first.redisClusterId,
      accesses,
      writes: this.#writes,
      bytes: this.#bytes,
      saved: sum(this.#saved),
      share: allAccesses === 0 ? 0 : Math.min(1, accesses / allAccesses),
      peakPerSecond: Math.round(peaks[peakPoint]!),
      peakAt: from + peakPoint * resolutionMs,
      hotMs: hotSeconds * 1000,
      series: Array.from(this.#accesses, (amount) => perSecond(amount, resolutionMs)),
      savedSeries: Array.from(this.#saved, (amount) => perSecond(amount, resolutionMs)),
      states: isKey ? this.#letters.join('') : '',
      services: [...this.#services].sort(),
      ruleIds: [...this.#ruleIds].sort(),
      slot: isKey || this.#by === 'slot' ? this.#first.slot : null,
      node: this.#by === 'node' ? this.#name : this.#first.node,
    }
  }
}

function orderOf(row: HistoryRow, sort: HistorySort): number {
  switch (sort) {
    case 'accesses':
      return row.accesses
    case 'peak':
      return row.peakPerSecond
    case 'saved':
      return row.saved
    case 'hot':
      return row.hotMs
    case 'bytes':
      return row.bytes
    case 'writes':
      return row.writes
    case 'name':
      return 0
  }
}

/** Accesses per second, rounded; small ones keep a decimal, so that rare accesses do not become zero. */
function perSecond(amount: number, resolutionMs: number): number {
  const rate = (amount * 1000) / resolutionMs
  return rate < 10 ? Math.round(rate * 10) / 10 : Math.round(rate)
}
