import { type HistoryEvent, parseKeyText } from '@firebreak/core'
import type { Fleet } from '../fleet/fleet.ts'
import { BrokenLaw } from './laws.ts'

/** How long a report and a post take with nothing in their way … */
const onTheWayMs = 600
/** … and how long until everything held up by a fault has arrived. */
const calmMs = 3500

/** A key became hot: by no more accesses than were made. */
export function checkHeat(fleet: Fleet, { kind, key: shown, text }: HistoryEvent): void {
  const key = parseKeyText(shown) ?? shown
  const heat = /: ([\d,]+)\/s over 1 s ≥/.exec(text)?.[1]?.replaceAll(',', '')
  if (kind !== 'hot' || heat === undefined || fleet.isAnyDisturbed(calmMs)) return
  const made = fleet.accessesOf(key, 1000 + onTheWayMs)
  if (Number(heat) <= made) return
  const detail = `${key} became hot by ${heat} accesses in a second, and had ${made} in ${1000 + onTheWayMs} ms`
  fleet.world.fail(new BrokenLaw('heat', detail))
}
