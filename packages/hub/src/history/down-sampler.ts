import type { HeatLetter } from '@firebreak/core'
import {
  amountFields,
  type BlockRow,
  blockSteps,
  type HistoryBlock,
  type RowKind,
  type StepMs,
  stepLengths,
  trafficFields,
  zeros,
} from './history-block.ts'

/** What was seen of a key, service, node or slot in one second. */
export interface HeatSample {
  readonly kind: RowKind
  readonly redisClusterId: string
  readonly name: string
  readonly accesses: number
  readonly writes: number
  readonly bytes: number
  readonly saved: number
  readonly letter: HeatLetter
  readonly services: readonly string[]
  readonly ruleId: string | undefined
  readonly slot: number
  readonly node: string
}

/** Rows in one open block; further ones are only summed. */
const maxRows = 3000
const maxServicesOfRow = 8
/** From the least to the most that is done about a key. */
export const letterOrder = '.wolicm'
/** Anything later than this after a block's end is left out. */
const lateMs = 3000

interface OpenBlock extends HistoryBlock {
  readonly rows: BlockRow[]
  readonly byId: Map<string, BlockRow>
  /** True if something was added since it was last returned. */
  isChanged: boolean
}

/**
 * Sums seconds into points of 1 s, 10 s and 1 min, all three at once: a point of a minute is the sum of its seconds,
 * not of points that have lost their coldest keys. An open block is returned repeatedly, each time whole.
 */
export class DownSampler {
  readonly #open = new Map<string, OpenBlock>()

  /** Adds a row of the second that begins at `at`. */
  add(at: number, sample: HeatSample): void {
    for (const stepMs of stepLengths) {
      const block = this.#block(stepMs, at)
      const step = Math.floor((at - block.at) / stepMs)
      const row = rowOf(block, sample)
      if (row === undefined) {
        if (sample.kind === 'key')
          for (const [index, field] of amountFields.entries()) block.rest[index]![step]! += sample[field]
        continue
      }
      for (const field of amountFields) row[field][step]! += sample[field]
      row.peak[step] = Math.max(row.peak[step]!, sample.accesses)
      if (letterOrder.indexOf(sample.letter) > letterOrder.indexOf(row.letters[step]!))
        row.letters[step] = sample.letter
      if (isHotLetter(sample.letter)) row.hot[step]!++
      for (const service of sample.services) addName(row.services, service)
      if (sample.ruleId !== undefined) addName(row.ruleIds, sample.ruleId)
    }
  }

  /** Adds accesses of the second that begins at `at`, by who answered. */
  addTraffic(at: number, traffic: Readonly<Record<(typeof trafficFields)[number], number>>): void {
    for (const stepMs of stepLengths) {
      const block = this.#block(stepMs, at)
      const step = Math.floor((at - block.at) / stepMs)
      for (const [index, field] of trafficFields.entries()) block.traffic[index]![step]! += traffic[field]
    }
  }

  /**
   * Changed blocks to be written: complete ones, which are then dropped here, and at the end of each point also open
   * ones, so that a killed hub loses ten seconds.
   */
  due(now: number): HistoryBlock[] {
    const due: HistoryBlock[] = []
    for (const [id, block] of this.#open) {
      const isOver = now >= block.at + block.stepMs * blockSteps + lateMs
      const isCheckpoint = block.stepMs > 1000 && Math.floor(now / 1000) % 10 === 0
      if (block.isChanged && (isOver || isCheckpoint)) {
        due.push(block)
        block.isChanged = false
      }
      if (isOver) this.#open.delete(id)
    }
    return due
  }

  /** Everything that has not been returned yet. */
  rest(): HistoryBlock[] {
    return [...this.#open.values()].filter(({ isChanged }) => isChanged)
  }

  /** Blocks still being filled, for one length of points. */
  open(stepMs: StepMs): HistoryBlock[] {
    return [...this.#open.values()].filter((block) => block.stepMs === stepMs)
  }

  #block(stepMs: StepMs, at: number): OpenBlock {
    const length = stepMs * blockSteps
    const start = Math.floor(at / length) * length
    const id = `${stepMs} ${start}`
    let block = this.#open.get(id)
    if (block === undefined) {
      const lists = (count: number) => Array.from({ length: count }, zeros)
      block = {
        stepMs,
        at: start,
        traffic: lists(trafficFields.length),
        rest: lists(amountFields.length),
        rows: [],
        byId: new Map(),
        isChanged: true,
      }
      this.#open.set(id, block)
    }
    block.isChanged = true
    return block
  }
}

export function isHotLetter(letter: HeatLetter): boolean {
  return letter !== '.' && letter !== 'w'
}

function rowOf(block: OpenBlock, sample: HeatSample): BlockRow | undefined {
  const { kind, redisClusterId, name, slot, node } = sample
  const id = `${kind}\u0000${redisClusterId}\u0000${name}`
  let row = block.byId.get(id)
  if (row !== undefined || block.rows.length >= maxRows) return row
  row = {
    kind,
    redisClusterId,
    name,
    accesses: zeros(),
    writes: zeros(),
    bytes: zeros(),
    saved: zeros(),
    peak: zeros(),
    hot: zeros(),
    letters: new Array<HeatLetter>(blockSteps).fill('.'),
    services: [],
    ruleIds: [],
    slot,
    node,
  }
  block.byId.set(id, row)
  block.rows.push(row)
  return row
}

function addName(names: string[], name: string): void {
  if (names.length < maxServicesOfRow && !names.includes(name)) names.push(name)
}
