import { keyBytes, parseKeyText } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { HeatHistory } from './heat-history.ts'
import { eachPoint, type Period } from './past.ts'

/** A recorded key. */
export interface RecordedKey {
  readonly redisClusterId: string
  /** The key's name. */
  readonly key: string
  readonly slot: number
  readonly services: readonly string[]
}

/** One key's amounts in one point. */
export interface RecordedCount {
  readonly of: RecordedKey
  accesses: number
  writes: number
  bytes: number
}

/** The hottest keys' amounts in one point, over all hubs. */
export interface RecordedPoint {
  /** Its start, hub time. */
  readonly at: number
  /** All accesses, including those of other keys. */
  total: number
  readonly counts: RecordedCount[]
}

/** Maximum number of points in one reading. */
export const maxRecordedPoints = 10_000

/** The records of a period, point by point, oldest first; empty points are left out. */
export async function readRecords(history: Pick<HeatHistory, 'blocks'>, period: Period): Promise<RecordedPoint[]> {
  const points = new Map<number, RecordedPoint & { readonly byKey: Map<RecordedKey, RecordedCount> }>()
  const names = new Map<string, RecordedKey>()
  const pointAt = (point: number) => {
    let found = points.get(point)
    if (found === undefined) {
      found = { at: period.from + point * period.resolutionMs, total: 0, counts: [], byKey: new Map() }
      points.set(point, found)
    }
    return found
  }
  await eachPoint(history, period, {
    traffic: (amounts, point) => {
      const total = amounts.reduce((sum, amount) => sum + amount, 0)
      if (total > 0) pointAt(point).total += total
    },
    row: (row, step, point) => {
      const accesses = row.accesses[step]!
      if (row.kind !== 'key' || accesses === 0) return
      const id = `${row.redisClusterId}\u0000${row.name}`
      let of = names.get(id)
      if (of === undefined) {
        const key = parseKeyText(row.name)
        if (key === undefined) return
        const slot = row.slot >= 0 ? row.slot : keySlotOfBytes(keyBytes(key))
        of = { redisClusterId: row.redisClusterId, key, slot, services: row.services }
        names.set(id, of)
      }
      const { counts, byKey } = pointAt(point)
      let count = byKey.get(of)
      if (count === undefined) {
        count = { of, accesses: 0, writes: 0, bytes: 0 }
        byKey.set(of, count)
        counts.push(count)
      }
      count.accesses += accesses
      count.writes += row.writes[step]!
      count.bytes += row.bytes[step]!
    },
  })
  return [...points.values()].sort((a, b) => a.at - b.at)
}
