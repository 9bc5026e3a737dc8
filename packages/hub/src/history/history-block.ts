import { deflateRawSync, inflateRawSync } from 'node:zlib'
import type { HeatLetter } from '@firebreak/core'

/** What a row of a block describes. Prefixes are derived from keys on request. */
export type RowKind = 'key' | 'service' | 'node' | 'slot'

/** Points of a block. */
export const blockSteps = 10
/** The lengths of stored points, in milliseconds. */
export const stepLengths = [1000, 10_000, 60_000] as const
export type StepMs = (typeof stepLengths)[number]

/** Who answered, in the order used in blocks. */
export const trafficFields = ['redis', 'local', 'copies', 'limited', 'writes'] as const
/** The amounts of a row, summed point by point. */
export const amountFields = ['accesses', 'writes', 'bytes', 'saved'] as const
export type AmountField = (typeof amountFields)[number]

/** One key, service, node or slot in a block: a number for each of its points. */
export interface BlockRow {
  readonly kind: RowKind
  readonly redisClusterId: string
  /** Key text, service, node, or the slot's number. */
  readonly name: string
  readonly accesses: number[]
  readonly writes: number[]
  readonly bytes: number[]
  readonly saved: number[]
  /** The highest accesses of one second of the point. */
  readonly peak: number[]
  /** Seconds of the point in which it was hot. */
  readonly hot: number[]
  /** The most that was done about it during the point. */
  readonly letters: HeatLetter[]
  readonly services: string[]
  readonly ruleIds: string[]
  readonly slot: number
  readonly node: string
}

/** Ten points of one length, as one hub saw them. */
export interface HistoryBlock {
  readonly stepMs: StepMs
  /** Start of the first point; a multiple of ten points. */
  readonly at: number
  /** Accesses by who answered: a list of points for each of `trafficFields`. */
  readonly traffic: number[][]
  readonly rows: readonly BlockRow[]
  /** The sums of keys that found no room: a list of points for each of `amountFields`. */
  readonly rest: number[][]
}

export function zeros(): number[] {
  return new Array<number>(blockSteps).fill(0)
}

export function rowAmount({ accesses }: BlockRow): number {
  return accesses.reduce((sum, count) => sum + count, 0)
}

/**
 * A block as stored: JSON in which all-zero points are one digit, deflated, in base64, because a store holds only text.
 * If that exceeds `maxBytes`, the coldest keys go into `rest`, so that sums stay right; undefined if even the sums
 * alone exceed it.
 */
export function encodeBlock(block: HistoryBlock, maxBytes: number): string | undefined {
  let { rows, rest } = block
  for (;;) {
    const json = JSON.stringify([block.traffic.map(packed), rest.map(packed), rows.map(packRow)])
    const text = deflateRawSync(json, { level: 4 }).toString('base64')
    if (text.length <= maxBytes) return text
    if (rows.length === 0) return undefined
    const keep = Math.min(rows.length - 1, Math.floor((rows.length * maxBytes * 0.95) / text.length))
    ;[rows, rest] = withoutColdest(rows, rest, keep)
  }
}

export function decodeBlock(stepMs: StepMs, at: number, text: string): HistoryBlock {
  const json = inflateRawSync(Buffer.from(text, 'base64'), { maxOutputLength: maxInflatedBytes }).toString()
  const [traffic, rest, rows] = JSON.parse(json) as [Packed[], Packed[], PackedRow[]]
  return { stepMs, at, traffic: traffic.map(unpacked), rest: rest.map(unpacked), rows: rows.map(unpackRow) }
}

/** Only hubs write blocks; one that inflates beyond this was not written by a hub. */
const maxInflatedBytes = 64 * 1024 * 1024

type Packed = number[] | 0
type PackedRow = [
  kind: number,
  cluster: string,
  name: string,
  amounts: Packed[],
  letters: string,
  services: string[] | 0,
  ruleIds: string[] | 0,
  slot: number,
  node: string,
]

const kinds: readonly RowKind[] = ['key', 'service', 'node', 'slot']
const cold = '.'.repeat(blockSteps)

function packed(points: readonly number[]): Packed {
  return points.every((point) => point === 0) ? 0 : [...points]
}

function unpacked(points: Packed): number[] {
  return points === 0 ? zeros() : points
}

function packRow(row: BlockRow): PackedRow {
  const { accesses, writes, bytes, saved, peak, hot } = row
  // The peak of a one-second point is its count.
  const isPlain = peak.every((count, step) => count === accesses[step])
  const amounts = [accesses, writes, bytes, saved, isPlain ? zeros() : peak, hot].map(packed)
  const letters = row.letters.join('')
  return [
    kinds.indexOf(row.kind),
    row.redisClusterId,
    row.name,
    amounts,
    letters === cold ? '' : letters,
    row.services.length === 0 ? 0 : row.services,
    row.ruleIds.length === 0 ? 0 : row.ruleIds,
    row.slot,
    row.node,
  ]
}

function unpackRow([kind, redisClusterId, name, amounts, letters, services, ruleIds, slot, node]: PackedRow): BlockRow {
  const [accesses, writes, bytes, saved, peak, hot] = amounts.map(unpacked) as [
    number[],
    number[],
    number[],
    number[],
    number[],
    number[],
  ]
  return {
    kind: kinds[kind] ?? 'key',
    redisClusterId,
    name,
    accesses,
    writes,
    bytes,
    saved,
    peak: amounts[4] === 0 ? [...accesses] : peak,
    hot,
    letters: [...(letters === '' ? cold : letters)] as HeatLetter[],
    services: services === 0 ? [] : services,
    ruleIds: ruleIds === 0 ? [] : ruleIds,
    slot,
    node,
  }
}

/** The hottest `keep` rows; the other keys are added to the rest, while services, nodes and slots are sums already. */
function withoutColdest(rows: readonly BlockRow[], rest: number[][], keep: number): [BlockRow[], number[][]] {
  const ranked = rows.toSorted((a, b) => rank(b) - rank(a) || rowAmount(b) - rowAmount(a) || (a.name < b.name ? -1 : 1))
  const sums = rest.map((points) => [...points])
  for (const row of ranked.slice(keep)) {
    if (row.kind !== 'key') continue
    for (const [index, field] of amountFields.entries())
      for (const [step, amount] of row[field].entries()) sums[index]![step]! += amount
  }
  return [ranked.slice(0, keep), sums]
}

/** Slots are dropped first: there are many, and their keys say most of it. Services and nodes are few. */
function rank({ kind, hot }: BlockRow): number {
  if (kind === 'slot') return 0
  if (kind !== 'key') return 3
  return hot.some((seconds) => seconds > 0) ? 2 : 1
}
