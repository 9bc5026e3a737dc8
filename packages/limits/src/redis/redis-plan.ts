import type { Answer } from '../answer.ts'
import { Calendar } from '../calendar/calendar.ts'
import { drainPlan } from '../spec/drain-plan.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { capacityOf } from '../spec/specs.ts'
import type { AlgorithmName } from './scripts.ts'

/** How a spec runs on Redis: the script's algorithm, its parameters, and how its numbers become an answer. */
export interface RedisPlan {
  readonly algorithm: AlgorithmName
  /** The script's parameters; those of the calendar depend on the server's time. */
  parameters(serverNowMs: number): readonly number[]
  /** What one unit of cost adds to the level. */
  readonly unit: number
  /** The highest level. */
  readonly capacity: number
  /** How much of the level drains per millisecond, if the time to reset follows from the level alone; otherwise 0. */
  readonly rate: number
  readonly paces: boolean
  /** The highest cost that can ever be admitted. */
  readonly maxCost: number
}

/** The plan of a spec. */
export function redisPlan(spec: LimitSpec): RedisPlan {
  const maxCost = capacityOf(spec)
  const plain = (algorithm: AlgorithmName, parameters: readonly number[], unit = 1): RedisPlan => ({
    algorithm,
    parameters: () => parameters,
    unit,
    capacity: maxCost * unit,
    rate: 0,
    paces: false,
    maxCost,
  })
  switch (spec.kind) {
    case 'fixedWindow':
      return plain('window', [spec.limit, spec.windowMs, spec.anchor === 'firstHit' ? 1 : 0, 0, 0, 0])
    case 'calendarWindow': {
      const calendar = new Calendar(spec.unit, spec.timeZone)
      let last: readonly number[] = []
      return {
        ...plain('window', []),
        parameters: (serverNowMs) => {
          // Two windows are sent, so that an edge passed in transit needs no second call.
          if (last.length === 0 || serverNowMs < last[3]! || serverNowMs >= last[4]!) {
            const { start, end } = calendar.windowOf(serverNowMs)
            last = [spec.limit, 0, 0, start, end, calendar.windowOf(end).end]
          }
          return last
        },
      }
    }
    case 'slidingWindow': {
      const span = spec.mode === 'strict' ? spec.buckets + 1 : spec.buckets
      return plain('buckets', [spec.limit, spec.windowMs, spec.buckets, span])
    }
    case 'slidingCounter':
      return plain('counter', [spec.limit, spec.windowMs], spec.windowMs)
    case 'slidingLog':
      return plain('log', [spec.limit, spec.windowMs])
    case 'concurrency':
      return plain('concurrency', [spec.limit, spec.leaseMs])
    default: {
      const { capacity, unit, rate, paces } = drainPlan(spec)
      const parameters = [capacity, unit, rate]
      return { algorithm: 'drain', parameters: () => parameters, unit, capacity, rate, paces, maxCost }
    }
  }
}

/**
 * The answer to the n-th admitted call of a run, n from 0, given the level after all of them: each later one added its
 * cost to the level.
 */
export function admittedAnswer(
  plan: RedisPlan,
  cost: number,
  laterCalls: number,
  levelAfterAll: number,
  resetMs: number,
): Answer {
  const level = levelAfterAll - laterCalls * cost * plan.unit
  return {
    allowed: true,
    remaining: Math.floor((plan.capacity - level) / plan.unit),
    retryAfterMs: 0,
    // Beyond draining the level, this is how far a clock that stepped back is behind the state.
    resetMs: plan.rate > 0 ? Math.ceil(level / plan.rate) + resetMs - Math.ceil(levelAfterAll / plan.rate) : resetMs,
    delayMs: plan.paces && cost > 0 && level > plan.unit ? Math.ceil((level - plan.unit) / plan.rate) : 0,
    source: 'redis',
  }
}

/** The answer to a denied call; a level of -1 means that the key is blocked. */
export function deniedAnswer(
  plan: RedisPlan,
  cost: number,
  level: number,
  retryAfterMs: number,
  resetMs: number,
): Answer {
  return {
    allowed: false,
    remaining: level < 0 ? 0 : Math.max(0, Math.floor((plan.capacity - level) / plan.unit)),
    retryAfterMs: cost > plan.maxCost ? null : retryAfterMs,
    resetMs,
    delayMs: 0,
    source: 'redis',
  }
}
