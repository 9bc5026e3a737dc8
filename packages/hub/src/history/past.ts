import { type HistorySettings, keyText, parseKeyText } from '@firebreak/core'
import { ApiProblem } from '../errors.ts'
import type { HeatHistory } from './heat-history.ts'
import { keepMsOf } from './heat-history.ts'
import type { BlockRow, StepMs } from './history-block.ts'
import { blockSteps, stepLengths } from './history-block.ts'

/** A period divided into points of one length, and the blocks that it is read from. */
export interface Period {
  readonly from: number
  readonly to: number
  readonly stepMs: StepMs
  /** The length of a point: `stepMs`, or a multiple of it. */
  readonly resolutionMs: number
  readonly points: number
}

export const hourMs = 3_600_000
export const dayMs = 24 * hourMs
/** Maximum number of points in an answer. */
export const maxPoints = 720
/** Maximum number of rows on a page; each has a series. */
export const maxRowsOfPage = 1000
/** The longest period of one query. */
export const maxPeriodMs = 400 * dayMs

/**
 * The finest points that are kept as far back as `from` and are not too many; for a long period the coarsest are
 * merged. The period is extended to whole points.
 */
export function choosePeriod(
  from: number,
  to: number,
  now: number,
  settings: HistorySettings,
  { leastMs = 0, most = maxPoints }: { readonly leastMs?: number; readonly most?: number } = {},
): Period {
  const cut = (stepMs: StepMs, resolutionMs: number): Period => {
    const start = Math.floor(from / resolutionMs) * resolutionMs
    const points = Math.max(1, Math.ceil((to - start) / resolutionMs))
    return { from: start, to: start + points * resolutionMs, stepMs, resolutionMs, points }
  }
  for (const stepMs of stepLengths) {
    const isKept = from >= now - keepMsOf(settings, stepMs) - stepMs
    const period = cut(stepMs, stepMs)
    if (stepMs >= leastMs && isKept && period.points <= most) return period
  }
  const minute = stepLengths.at(-1)!
  const minutes = Math.max(1, Math.ceil((to - from) / minute / Math.max(1, most - 1)), Math.ceil(leastMs / minute))
  return cut(minute, minute * minutes)
}

/** Refuses a period that ends before it begins or is too long. */
export function checkPeriod(from: number, to: number, most: number): void {
  if (from >= to) throw new ApiProblem(400, 'FB_INPUT_INVALID', 'from must be before to', 'from')
  if (to - from <= most) return
  throw new ApiProblem(400, 'FB_INPUT_INVALID', `the period is longer than ${most / hourMs} hours`, 'from')
}

/** Which rows are requested. */
export interface RowFilter {
  readonly redisClusterId?: string | undefined
  /** Key text. */
  readonly key?: string | undefined
  /** A prefix of a key text. */
  readonly prefix?: string | undefined
  readonly service?: string | undefined
  readonly ruleId?: string | undefined
  readonly node?: string | undefined
  readonly slot?: number | undefined
}

export function isWanted(row: BlockRow, filter: RowFilter): boolean {
  const { redisClusterId, key, prefix, service, ruleId, node, slot } = filter
  return (
    (redisClusterId === undefined || row.redisClusterId === redisClusterId || row.kind === 'service') &&
    (key === undefined || row.name === key) &&
    (prefix === undefined || row.name.startsWith(prefix)) &&
    (service === undefined || (row.kind === 'service' ? row.name === service : row.services.includes(service))) &&
    (ruleId === undefined || row.ruleIds.includes(ruleId)) &&
    (node === undefined || (row.kind === 'node' ? row.name : row.node) === node) &&
    (slot === undefined || row.slot === slot)
  )
}

/** Calls back for each point of each row of the period, with the point's index. */
export async function eachPoint(
  history: Pick<HeatHistory, 'blocks'>,
  period: Period,
  visit: {
    readonly row?: (row: BlockRow, step: number, point: number) => void
    readonly traffic?: (amounts: readonly number[], point: number) => void
    readonly rest?: (amounts: readonly number[], point: number) => void
  },
): Promise<void> {
  const { from, to, stepMs, resolutionMs } = period
  for await (const block of history.blocks(stepMs, from, to)) {
    for (let step = 0; step < blockSteps; step++) {
      const at = block.at + step * stepMs
      if (at < from || at >= to) continue
      const point = Math.floor((at - from) / resolutionMs)
      visit.traffic?.(
        block.traffic.map((list) => list[step]!),
        point,
      )
      visit.rest?.(
        block.rest.map((list) => list[step]!),
        point,
      )
      if (visit.row !== undefined) for (const row of block.rows) visit.row(row, step, point)
    }
  }
}

/** A key up to and including its first separator, as key text; the whole key if it has none. */
export function prefixOf(text: string): string {
  const beginning = /^[^:_/.|]*[:_/.|]/.exec(parseKeyText(text) ?? text)?.[0]
  return beginning === undefined ? text : keyText(beginning)
}
