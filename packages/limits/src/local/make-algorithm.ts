import { drainPlan } from '../spec/drain-plan.ts'
import type { LimitSpec } from '../spec/spec.ts'
import type { Algorithm } from './algorithm.ts'
import { Buckets } from './buckets.ts'
import { Concurrency } from './concurrency.ts'
import { Counter } from './counter.ts'
import { Drain } from './drain.ts'
import { Log } from './log.ts'
import { Window } from './window.ts'

/** The in-process algorithm of a spec. */
export function makeAlgorithm(spec: LimitSpec): Algorithm {
  switch (spec.kind) {
    case 'fixedWindow':
    case 'calendarWindow':
      return new Window(spec)
    case 'slidingWindow':
      return new Buckets(spec)
    case 'slidingCounter':
      return new Counter(spec)
    case 'slidingLog':
      return new Log(spec)
    case 'concurrency':
      return new Concurrency(spec)
    default:
      return new Drain(drainPlan(spec))
  }
}
