import type { Fault, FaultSchedule } from './fault-schedule.ts'

/** What shrinking came to. */
export interface ShrunkSchedule {
  readonly schedule: FaultSchedule
  /** How often the run was repeated for it. */
  readonly runs: number
}

/**
 * The smallest schedule that still fails: delta debugging (Zeller's ddmin: halves, then quarters …, each alone and each
 * left out), then every fault that is left is made as short as it can be. A run is the same twice, so the result is
 * too. It ends after `maxRuns` runs with the smallest schedule so far; no fault can be left out of a result that came
 * within them.
 */
export async function shrinkSchedule(
  schedule: FaultSchedule,
  fails: (schedule: FaultSchedule) => boolean | Promise<boolean>,
  { maxRuns = 200 }: { readonly maxRuns?: number } = {},
): Promise<ShrunkSchedule> {
  let runs = 0
  const stillFails = async (candidate: FaultSchedule): Promise<boolean> => {
    if (runs >= maxRuns) return false
    runs++
    return fails(candidate)
  }
  if (schedule.length > 0 && (await stillFails([]))) return { schedule: [], runs }
  const few = await fewestFaults(schedule, stillFails)
  return { schedule: await shortestFaults(few, stillFails), runs }
}

type Fails = (schedule: FaultSchedule) => Promise<boolean>

async function fewestFaults(schedule: FaultSchedule, fails: Fails): Promise<FaultSchedule> {
  let current = schedule
  let parts = 2
  while (current.length >= 2) {
    const smaller = await firstFailing(candidates(current, parts), fails)
    if (smaller !== undefined) {
      parts = smaller.length <= Math.ceil(current.length / parts) ? 2 : Math.max(parts - 1, 2)
      current = smaller
    } else if (parts >= current.length) {
      break
    } else {
      parts = Math.min(parts * 2, current.length)
    }
  }
  return current
}

/** Each part alone, then all but each part. */
function candidates(schedule: FaultSchedule, parts: number): FaultSchedule[] {
  const size = Math.ceil(schedule.length / parts)
  const starts = Array.from({ length: Math.ceil(schedule.length / size) }, (_, index) => index * size)
  const alone = starts.map((start) => schedule.slice(start, start + size))
  if (starts.length <= 2) return alone
  return [...alone, ...starts.map((start) => [...schedule.slice(0, start), ...schedule.slice(start + size)])]
}

async function firstFailing(schedules: readonly FaultSchedule[], fails: Fails): Promise<FaultSchedule | undefined> {
  for (const schedule of schedules) if (await fails(schedule)) return schedule
  return undefined
}

async function shortestFaults(schedule: FaultSchedule, fails: Fails): Promise<FaultSchedule> {
  let current = schedule
  for (let index = 0; index < current.length; index++) {
    for (;;) {
      const fault = current[index]!
      if (fault.forMs === undefined || fault.forMs < 2) break
      const shorter: Fault = { ...fault, forMs: Math.floor(fault.forMs / 2) }
      const candidate = current.with(index, shorter)
      if (!(await fails(candidate))) break
      current = candidate
    }
  }
  return current
}
