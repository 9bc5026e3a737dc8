import { maxFrameHeadBytes, VarintWriter, writeFrameHead, writeReportEntry } from '@firebreak/core'
import { ThresholdSampler } from '@firebreak/core/heat'

export const serviceId = 'shop'
export const redisClusterId = 'main'
export const flashKey = 'flash:0'

/** What a report is made from. */
export interface ReportOrder {
  /** Accesses of keys by popularity since the last one. */
  readonly accesses: number
  /** Accesses of the key that everybody wants. */
  readonly flash?: number
  readonly samplingFloor: number
  readonly sensor: number
  readonly sequence: number
  readonly nowMs: number
}

export interface MadeReport {
  readonly bytes: Uint8Array
  readonly payloadStart: number
  readonly sequence: number
  readonly rows: number
}

interface Body {
  readonly entries: Uint8Array
  readonly rows: number
}

/** Zipf's exponent: the most popular of a million keys gets 1.3 % of all accesses. */
const exponent = 0.8
const bodiesPerSize = 64

/**
 * Reports of light sensors: rows by popularity among a million keys, from a pool of bodies that were drawn once for each
 * size and sampling floor. What two sensors report differs as chance has it; drawing each anew would cost more than the hub.
 */
export class ReportPool {
  readonly #random: () => number
  readonly #weights: Float64Array
  readonly #bodies = new Map<string, Body[]>()
  readonly #sampler: ThresholdSampler

  constructor(random: () => number, keys: number) {
    this.#random = random
    this.#sampler = new ThresholdSampler(random)
    this.#weights = new Float64Array(keys)
    let sum = 0
    for (let rank = 0; rank < keys; rank++) this.#weights[rank] = sum += 1 / (rank + 1) ** exponent
  }

  report(order: ReportOrder): MadeReport {
    const body = this.#body(order)
    const writer = new VarintWriter(body.entries.length + 256)
    const flash = order.flash ?? 0
    const name = `sensor-${order.sensor}`
    writeFrameHead(writer, 'report', order.sequence)
    const payloadStart = writer.length
    writer.varint(Math.floor(order.nowMs))
    writer.varint(Math.floor(order.nowMs))
    for (const text of [serviceId, name, name]) writer.text(text)
    writer.varint(1)
    writer.text(redisClusterId)
    writer.varint(order.accesses + flash)
    const isFlash = this.#isSent(flash, order.samplingFloor)
    const rows = body.rows + (isFlash ? 1 : 0)
    writer.varint(rows)
    if (isFlash) writeReportEntry(writer, flashKey, this.#sampler.count, 0, 0)
    writer.raw(body.entries)
    return { bytes: writer.finish(), payloadStart, sequence: order.sequence, rows }
  }

  #isSent(count: number, factor: number): boolean {
    this.#sampler.factor = factor
    return count > 0 && this.#sampler.sample(count, 0, 0)
  }

  #body({ accesses, samplingFloor }: ReportOrder): Body {
    const id = `${accesses} ${samplingFloor}`
    let bodies = this.#bodies.get(id)
    if (bodies === undefined) {
      // Paces change once a second: what is of an earlier one is not wanted again.
      if (this.#bodies.size > 40) this.#bodies.clear()
      bodies = Array.from({ length: bodiesPerSize }, () => this.#draw(accesses, samplingFloor))
      this.#bodies.set(id, bodies)
    }
    return bodies[Math.floor(this.#random() * bodies.length)]!
  }

  #draw(accesses: number, samplingFloor: number): Body {
    const counts = new Map<number, number>()
    for (let access = 0; access < accesses; access++) {
      const rank = this.#rank()
      counts.set(rank, (counts.get(rank) ?? 0) + 1)
    }
    const entries = new VarintWriter(counts.size * 24 + maxFrameHeadBytes)
    let rows = 0
    for (const [rank, count] of counts) {
      if (!this.#isSent(count, samplingFloor)) continue
      writeReportEntry(entries, `item:${rank}`, this.#sampler.count, 0, 0)
      rows++
    }
    return { entries: entries.finish(), rows }
  }

  #rank(): number {
    const weights = this.#weights
    const wanted = this.#random() * weights[weights.length - 1]!
    let low = 0
    let high = weights.length - 1
    while (low < high) {
      const middle = (low + high) >> 1
      if (weights[middle]! < wanted) low = middle + 1
      else high = middle
    }
    return low
  }
}
