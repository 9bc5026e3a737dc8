import { drainPlan } from '../spec/drain-plan.ts'
import type { LimitSpec } from '../spec/spec.ts'

/**
 * The minimum time until `units` are admitted after a call of `headCost` that had to wait for its own turn: how long a
 * newcomer at the end of a line waits at least after the first in line has been served. Never more than the actual
 * time, so nobody is refused who would have been served in time.
 */
export function leastMsAfterTurn(spec: LimitSpec, headCost: number, units: number): number {
  switch (spec.kind) {
    case 'tokenBucket':
    case 'leakyBucket':
    case 'leakyQueue':
    case 'gcra': {
      // The previous one left nothing over: it was admitted as soon as there was enough.
      const { unit, rate } = drainPlan(spec)
      return Math.max(0, Math.floor((units * unit) / rate) - 1)
    }
    case 'fixedWindow':
      // It opened a window, and the next ones follow.
      return Math.max(0, Math.ceil((units - (spec.limit - headCost)) / spec.limit)) * spec.windowMs
    case 'slidingLog':
      return spansOf(headCost + units, spec.limit) * spec.windowMs
    case 'slidingWindow': {
      const forgottenMs = spec.mode === 'strict' ? spec.windowMs : Math.floor(spec.windowMs * (1 - 1 / spec.buckets))
      return spansOf(headCost + units, spec.limit) * forgottenMs
    }
    case 'slidingCounter':
      return spansOf(headCost + units, 2 * spec.limit) * spec.windowMs
    case 'calendarWindow':
      return spansOf(headCost + units, 2 * spec.limit) * (spec.unit === 'hour' ? 1_800_000 : 72_000_000)
    case 'concurrency':
      // A hold may be given back at any time.
      return 0
  }
}

/** How long, at least, a pacing limit holds back a call that had to wait for its turn. */
export function delayAtTurn(spec: LimitSpec): number {
  return spec.kind === 'leakyQueue' ? Math.floor(spec.queue * spec.intervalMs) : 0
}

/** The whole spans between the first and the last of that many units, if each span allows at most `perSpan`. */
function spansOf(units: number, perSpan: number): number {
  return Math.floor((units - 1) / perSpan)
}
