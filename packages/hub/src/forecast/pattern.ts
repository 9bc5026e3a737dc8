import { dayMs } from '../schedule/zone-clock.ts'
import { weekdayOf } from './weekday.ts'

/** Heat that recurs at a time of day, on some or all days of the week, as stored. */
export interface PatternState {
  /** The time of day at which it comes, in local wall time. */
  centre: number
  /** The number of the last day that was judged as a hit or a miss. */
  judged: number
  /** How often it came and could have come, older days counting less. */
  pool: HitRecord
  /** The same by weekday, older weeks counting less. */
  cells: HitRecord[]
  /** How far off its time it came, newest last. */
  offsets: number[]
  /** Consecutive expected times at which it did not come. */
  misses: number
  /** The last days on which it was expected and did not come. */
  expectedMisses: number[]
  /** The day on which it last came. */
  lastHit: number
  seen: number
  missed: number
}

interface HitRecord {
  hits: number
  chances: number
  /** All hits, without fading. */
  count: number
}

/** An occurrence this close to a pattern's time belongs to it. */
export const reachMs = 30 * 60_000
const poolFade = 0.8
const cellFade = 0.8
/** How often a pattern must have occurred before it is expected again. */
export const leastSupport = 3
/** One that is less punctual than this needs more. */
const exactMs = 12 * 60_000
const looseSupport = 5
/**
 * Expected on a weekday if it came on at least this fraction of them; half a chance is added, so that a few count for
 * less.
 */
const cellTrust = 0.55
/**
 * Expected every day if it came on at least this fraction of the last days, unless the weekday's record says otherwise.
 */
const poolTrust = 0.6
const cellVeto = 0.4
/** After this many consecutive misses it waits for the next occurrence. */
const maxMisses = 2
const keptOffsets = 12
const keptMisses = 4
const recentOffsets = 7
const leastSpreadMs = 60_000

export function newPattern(centre: number, firstDay: number): PatternState {
  const empty = () => ({ hits: 0, chances: 0, count: 0 })
  return {
    centre: ((centre % dayMs) + dayMs) % dayMs,
    judged: firstDay - 1,
    pool: empty(),
    cells: Array.from({ length: 7 }, empty),
    offsets: [],
    misses: 0,
    expectedMisses: [],
    lastHit: firstDay,
    seen: 0,
    missed: 0,
  }
}

/** The day whose expected time is nearest to a moment, and the distance. */
export function nearest({ centre }: PatternState, local: number): { readonly day: number; readonly offset: number } {
  const day = Math.round((local - centre) / dayMs)
  return { day, offset: local - (day * dayMs + centre) }
}

/** Its expected time on a day. */
export function timeOn({ centre }: PatternState, day: number): number {
  return day * dayMs + centre
}

/** It came near its time on a day. */
export function hit(pattern: PatternState, day: number, offset: number): void {
  if (day <= pattern.judged) return
  passDays(pattern, day)
  judge(pattern, day, true)
  pattern.judged = day
  pattern.lastHit = day
  pattern.expectedMisses = []
  pattern.offsets.push(offset)
  if (pattern.offsets.length > keptOffsets) pattern.offsets.shift()
  recentre(pattern)
}

/** All days before this one on which it did not come are misses. */
export function passDays(pattern: PatternState, day: number): void {
  // After a month of silence, more makes no difference.
  if (day - pattern.judged > 60) pattern.judged = day - 60
  for (let next = pattern.judged + 1; next < day; next++) {
    judge(pattern, next, false)
    pattern.judged = next
  }
}

/** It has moved to another time, as on these days, which were not misses. */
export function moveTo(pattern: PatternState, offset: number, days: readonly number[]): void {
  for (const day of days) {
    if (day > pattern.judged) hit(pattern, day, 0)
    else {
      const cell = pattern.cells[weekdayOf(timeOn(pattern, day))]!
      cell.hits = Math.min(cell.chances, cell.hits + 1)
      pattern.pool.hits = Math.min(pattern.pool.chances, pattern.pool.hits + 1)
      pattern.seen++
      pattern.missed--
    }
    pattern.lastHit = Math.max(pattern.lastHit, day)
  }
  pattern.centre += offset
  pattern.offsets = [0]
  pattern.misses = 0
  pattern.expectedMisses = []
}

/** How likely it is to come on a day, 0 to 1, and whether that is enough to act on. */
export function outlook(pattern: PatternState, day: number): { readonly chance: number; readonly isTrusted: boolean } {
  const cell = pattern.cells[weekdayOf(timeOn(pattern, day))]!
  const { pool } = pattern
  const byDay = pool.chances === 0 ? 0 : pool.hits / (pool.chances + 0.2)
  const byWeekday = cell.hits / (cell.chances + 0.5)
  const isWeekly = cell.count >= leastSupport && byWeekday >= cellTrust
  const isVetoed = cell.chances >= 0.5 && cell.hits / cell.chances < cellVeto
  const isDaily = pool.count >= leastSupport && byDay >= poolTrust && !isVetoed
  const chance = isVetoed ? byWeekday : Math.max(byWeekday, isDaily || cell.count === 0 ? byDay : 0)
  // Three times within a few minutes of each other are hardly a coincidence; three within an hour may be.
  const isExact = pattern.seen >= looseSupport || spreadOf(pattern) <= exactMs
  return { chance: Math.min(1, chance), isTrusted: (isWeekly || isDaily) && isExact && pattern.misses < maxMisses }
}

/** Nine of ten came within this distance of its time. */
export function spreadOf({ offsets }: PatternState): number {
  const away = offsets.map(Math.abs).sort((a, b) => a - b)
  return Math.max(leastSpreadMs, away[Math.min(away.length - 1, Math.floor(away.length * 0.9))] ?? 0)
}

/** True if it comes on some weekdays but not all. */
export function isWeekly({ cells }: PatternState): boolean {
  return cells.some(({ hits, chances }) => chances >= 0.5 && hits / chances < cellVeto)
}

function judge(pattern: PatternState, day: number, came: boolean): void {
  const cell = pattern.cells[weekdayOf(timeOn(pattern, day))]!
  if (came) pattern.misses = 0
  else if (outlook(pattern, day).isTrusted) {
    pattern.misses++
    pattern.expectedMisses = [...pattern.expectedMisses, day].slice(-keptMisses)
  }
  // A weekday on which it never comes says nothing about others on which it usually does.
  const isIdle = !came && cell.chances >= 0.5 && cell.hits / cell.chances < cellVeto && pattern.cells.some(isReliable)
  if (!isIdle) add(pattern.pool, poolFade, came)
  add(cell, cellFade, came)
  if (came) pattern.seen++
  else if (!isIdle) pattern.missed++
}

function isReliable({ hits, chances, count }: HitRecord): boolean {
  return count >= 2 && hits / chances >= poolTrust
}

function add(record: HitRecord, fade: number, came: boolean): void {
  record.hits = record.hits * fade + (came ? 1 : 0)
  record.chances = record.chances * fade + 1
  if (came) record.count++
}

/** Its time follows the median of the last occurrences, by a few minutes a week if needed. */
function recentre(pattern: PatternState): void {
  const recent = pattern.offsets.slice(-recentOffsets).sort((a, b) => a - b)
  const middle = recent[Math.floor(recent.length / 2)]!
  // One step at a time; the offsets then refer to the new time.
  const step = middle / 2
  pattern.centre += step
  pattern.offsets = pattern.offsets.map((offset) => offset - step)
}
