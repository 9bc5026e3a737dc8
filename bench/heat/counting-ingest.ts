import { BinaryReportCursor } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { CountedClusters, type CountListener, type NearRow } from '@firebreak/hub'

/** Reports into the windows in which a hub counts all keys, with nothing behind them but a note of what is near. */
export class CountingIngest implements CountListener<true> {
  readonly nearRate: number = Number.POSITIVE_INFINITY
  readonly wantsPast = false
  readonly #keys = new CountedClusters<true>({ maxKeys: 20_000_000, hashSeed: 0 })
  #redisClusterId = ''
  #bytes: Buffer = Buffer.alloc(0)
  #nowMs = 0
  nearCount = 0

  constructor(threshold: number, windowMs: number) {
    this.#keys.setRules([parseRule({ id: 'hot', glob: '*', threshold, windowMs })], 1)
  }

  get size(): number {
    return this.#keys.size
  }

  /** Takes a report; gives its entries. */
  take(report: Buffer, nowMs: number): number {
    const sections = BinaryReportCursor.survey(report)
    const cursor = new BinaryReportCursor(report)
    this.#bytes = report
    this.#nowMs = nowMs
    while (cursor.nextSection()) {
      this.#redisClusterId = cursor.redisClusterId
      this.#keys.keysOf(cursor.redisClusterId, nowMs)!.addSection(cursor, nowMs, this)
    }
    return sections.reduce((sum, { entryCount }) => sum + entryCount, 0)
  }

  onRow({ near, keyStart, keyEnd }: NearRow<true>): void {
    if (near) return
    this.nearCount++
    this.#keys.addNear(this.#redisClusterId, this.#bytes.toString('latin1', keyStart, keyEnd), true, this.#nowMs)
  }

  onSlot(): void {}
}
