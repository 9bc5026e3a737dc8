/** The largest segment that a tag grows to by itself. */
export const maxStep = 1_000_000

const shortMs = 15 * 60_000
const longMs = 30 * 60_000

/**
 * How many ids to fetch next. A segment should last a quarter to half of an hour: long enough that the database is
 * rarely queried and can be down for that long, short enough that a restart does not leave large gaps. So the step
 * doubles when a segment lasted less than 15 minutes and halves when it lasted more than 30, between the table's step
 * and a million (or the table's step, where that is more).
 */
export function nextStep(step: number, tableStep: number, lastedMs: number): number {
  if (lastedMs < shortMs) return Math.max(tableStep, Math.min(step * 2, maxStep))
  if (lastedMs <= longMs) return Math.max(step, tableStep)
  return Math.max(Math.floor(step / 2), tableStep)
}
