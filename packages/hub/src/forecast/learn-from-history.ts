import { parseKeyText } from '@firebreak/core'
import type { HeatHistory } from '../history/heat-history.ts'
import type { BurningKey } from './recogniser.ts'

/** What was hot in one minute of the past. */
export interface PastMinute {
  readonly at: number
  readonly burning: readonly BurningKey[]
}

const minuteMs = 60_000

/** The minutes of a period in which keys were hot, oldest first: a hub without learned patterns learns from these. */
export async function pastMinutes(
  history: Pick<HeatHistory, 'blocks'>,
  from: number,
  to: number,
): Promise<PastMinute[]> {
  const minutes = new Map<number, Map<string, BurningKey>>()
  for await (const { at, rows } of history.blocks(minuteMs, from, to)) {
    for (const { kind, name, redisClusterId, hot, accesses } of rows) {
      const key = kind === 'key' ? parseKeyText(name) : undefined
      if (key === undefined) continue
      for (const [step, seconds] of hot.entries()) {
        // A key that was only held because of pre-warming was not hot.
        if (seconds === 0 || accesses[step] === 0) continue
        const minute = at + step * minuteMs
        const burning = minutes.get(minute) ?? new Map<string, BurningKey>()
        minutes.set(minute, burning.set(`${redisClusterId} ${name}`, { redisClusterId, key }))
      }
    }
  }
  return [...minutes].sort(([a], [b]) => a - b).map(([at, burning]) => ({ at, burning: [...burning.values()] }))
}
