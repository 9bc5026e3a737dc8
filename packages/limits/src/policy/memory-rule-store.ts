import { type Runtime, systemRuntime } from '@firebreak/core'
import type { Calendar } from '../calendar/calendar.ts'
import { RecentIds } from '../local/recent-ids.ts'
import { absorbedEnd } from '../local/step-back.ts'
import { TieredMap } from '../local/tiered-map.ts'
import { daySeconds, type PolicyRule } from './policy.ts'
import {
  type CounterState,
  type RuleCounter,
  type RuleStore,
  type StoreAnswer,
  type StoreCall,
  timeMs,
} from './rule-store.ts'

/** The numbers of one counter; which of them are used depends on its rule's method. */
interface Numbers {
  used: number
  endsAt: number
  usedToday: number
  dayEndsAt: number
  /** Times of a leak rule, oldest first. */
  times: number[]
  isOver: boolean
}

/** The current time on both clocks: days follow the wall clock, everything else the steady one. */
interface Present {
  readonly steady: number
  readonly wall: number
}

/** Entries of a leak rule kept beyond its count, so that some can be taken back. */
const spareEntries = 1000

/**
 * Counters of rules in this process: at most `maxCounters`; obsolete ones are swept as new ones arrive, and those over
 * their count are the last that a full store drops.
 */
export class MemoryRuleStore implements RuleStore {
  readonly #runtime: Runtime
  readonly #maxCounters: number
  readonly #counters = new TieredMap<Numbers>()
  readonly #taken = new RecentIds(daySeconds * 1000)

  constructor(options: { runtime?: Runtime; maxCounters?: number } = {}) {
    this.#runtime = options.runtime ?? systemRuntime
    this.#maxCounters = options.maxCounters ?? 1_000_000
  }

  get size(): number {
    return this.#counters.size
  }

  decide({ mode, counters, deciding, isDeniedOtherwise, days }: StoreCall): StoreAnswer {
    const now = this.#now()
    let isDenied = isDeniedOtherwise
    let isDecided = false
    const states: CounterState[] = []
    for (let index = 0; index < counters.length; index++) {
      const { key, rule, denies } = counters[index]!
      const numbers = this.#counters.get(key)
      const state = stateOf(rule, numbers, now, days)
      if (numbers !== undefined && numbers.isOver !== state.isOver) {
        numbers.isOver = state.isOver
        this.#counters.mark(key, state.isOver)
      }
      states.push(state)
      if (state.isOver && !isDecided && index < deciding && !rule.shadow) {
        isDecided = true
        isDenied = denies
      }
    }
    const isCounted = mode === 'add' || (mode === 'through' && !isDenied)
    if (isCounted) for (const counter of counters) if (counter.rule.count > 0) this.#add(counter, now, days)
    return { isCounted, states }
  }

  takeBack({ key, rule }: RuleCounter, entries: number, requestId: string | undefined, days: Calendar): boolean {
    const now = this.#now()
    if (requestId !== undefined && !this.#taken.isFirst(`${key} ${requestId}`, now.steady)) return false
    const numbers = this.#counters.get(key)
    if (numbers === undefined) return true
    settle(rule, numbers, now, days)
    numbers.used = Math.max(0, numbers.used - entries)
    numbers.usedToday = Math.max(0, numbers.usedToday - entries)
    numbers.times.length = Math.max(0, numbers.times.length - entries)
    return true
  }

  checkAlive(): void {}

  #now(): Present {
    const { clock, wallClock } = this.#runtime
    return { steady: Math.floor(clock.now()), wall: Math.floor(wallClock.now()) }
  }

  #add({ key, rule }: RuleCounter, now: Present, days: Calendar): void {
    let numbers = this.#counters.get(key)
    if (numbers === undefined) {
      numbers = { used: 0, endsAt: 0, usedToday: 0, dayEndsAt: 0, times: [], isOver: false }
      this.#makeRoom(now)
      this.#counters.add(key, numbers)
    } else settle(rule, numbers, now, days)
    if (rule.method === 'leak') {
      const at = Math.max(now.steady, numbers.times.at(-1) ?? 0)
      numbers.times.push(at)
      numbers.endsAt = at + timeMs(rule)
      if (numbers.times.length > rule.count + spareEntries) numbers.times.shift()
      return
    }
    if (rule.method === 'base') {
      if (numbers.usedToday === 0) numbers.dayEndsAt = days.windowOf(now.wall).end
      // Only what comes after the first `base` of the day counts against the limit.
      if (++numbers.usedToday <= rule.base) return
    }
    if (numbers.used++ > 0) return
    // What is over the base of a day is counted for that day, also while the clock is back in the one before.
    const isOfDay = rule.method === 'base' && rule.timeSeconds === daySeconds
    numbers.endsAt = isOfDay ? numbers.dayEndsAt : windowEnd(rule, now, days)
  }

  /** Sweeps up to two obsolete counters, and drops one if none is obsolete and the store is full. */
  #makeRoom({ steady, wall }: Present): void {
    const now = Math.min(steady, wall)
    for (const entry of [this.#counters.nextToDrop(), this.#counters.nextToDrop(), this.#counters.nextOver()]) {
      if (entry !== undefined && Math.max(entry[1].endsAt, entry[1].dayEndsAt) <= now) this.#counters.delete(entry[0])
    }
    if (this.#counters.size < this.#maxCounters) return
    const entry = this.#counters.nextToDrop()
    if (entry !== undefined) this.#counters.delete(entry[0])
  }
}

/** The end of a window that begins now: a calendar day if the rule's time is a day. */
function windowEnd(rule: PolicyRule, now: Present, days: Calendar): number {
  return rule.timeSeconds === daySeconds ? days.windowOf(now.wall).end : now.steady + timeMs(rule)
}

function stateOf(rule: PolicyRule, numbers: Numbers | undefined, now: Present, days: Calendar): CounterState {
  if (numbers === undefined) return unused
  settle(rule, numbers, now, days)
  const used = rule.method === 'leak' ? numbers.times.length : numbers.used
  const { usedToday } = numbers
  const isOver = rule.count > 0 && used >= rule.count && (rule.method !== 'base' || usedToday >= rule.base)
  return { isOver, used, usedToday }
}

const unused: CounterState = { isOver: false, used: 0, usedToday: 0 }

/** Brings a counter up to date: drops what has ended; absorbs a clock that stepped back (see `step-back.ts`). */
function settle(rule: PolicyRule, numbers: Numbers, { steady, wall }: Present, days: Calendar): void {
  if (rule.method === 'leak') {
    const { times } = numbers
    const spanMs = timeMs(rule)
    const latest = absorbedEnd((times.at(-1) ?? 0) + spanMs, steady, spanMs) - spanMs
    for (let index = times.length - 1; index >= 0 && times[index]! > latest; index--) times[index] = latest
    let ended = 0
    while (ended < times.length && times[ended]! <= steady - spanMs) ended++
    if (ended > 0) times.splice(0, ended)
    return
  }
  const isDaily = rule.timeSeconds === daySeconds
  const now = isDaily ? wall : steady
  if (now >= numbers.endsAt) numbers.used = 0
  else numbers.endsAt = absorbedEnd(numbers.endsAt, now, isDaily ? dayLength(days, wall) : timeMs(rule))
  if (numbers.usedToday > 0) {
    if (wall >= numbers.dayEndsAt) numbers.usedToday = 0
    else numbers.dayEndsAt = absorbedEnd(numbers.dayEndsAt, wall, dayLength(days, wall))
  }
}

function dayLength(days: Calendar, wall: number): number {
  const { start, end } = days.windowOf(wall)
  return end - start
}
