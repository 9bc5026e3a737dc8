import { dayMs, type ZoneClock } from '../schedule/zone-clock.ts'
import {
  hit,
  leastSupport,
  moveTo,
  nearest,
  newPattern,
  outlook,
  type PatternState,
  passDays,
  reachMs,
  timeOn,
} from './pattern.ts'

/** What is known about a key or prefix, as stored. */
export interface SubjectState {
  readonly redisClusterId: string
  /** A key's name, or a prefix. */
  readonly name: string
  readonly isPrefix: boolean
  readonly patterns: PatternState[]
  /** Occurrences without a pattern, local time, oldest first. */
  loose: number[]
  /** When it last became hot, and was last seen hot. */
  lastAt: number
  burntAt: number
  /** Prefixes: how many of the last openings each key was part of, older ones counting less. */
  readonly members: Record<string, number>
  openings: number
}

const maxPatterns = 4
const maxLoose = 40
/** The number of days that patterns are learned from. */
const lookBackDays = 36
/** After this long without heat an occurrence is over, and what comes next is another. */
export const gapMs = 30 * 60_000
const maxMembers = 200
const memberFade = 0.8
/** A pattern not seen for this long is forgotten. */
const forgetDays = 70

export function newSubject(redisClusterId: string, name: string, isPrefix: boolean): SubjectState {
  const never = Number.NEGATIVE_INFINITY
  return {
    redisClusterId,
    name,
    isPrefix,
    patterns: [],
    loose: [],
    lastAt: never,
    burntAt: never,
    members: {},
    openings: 0,
  }
}

/** It is hot now; true if that begins an occurrence. */
export function burn(subject: SubjectState, now: number, days: ZoneClock): boolean {
  const isNew = !(now - subject.burntAt < gapMs)
  subject.burntAt = now
  if (!isNew) return false
  subject.lastAt = now
  if (subject.isPrefix) open(subject)
  occur(subject, days.wallAt(now))
  return true
}

/** A key of the prefix is part of the current occurrence. */
export function join(subject: SubjectState, key: string): void {
  const known = subject.members[key]
  if (known === undefined && Object.keys(subject.members).length >= maxMembers) return
  subject.members[key] = (known ?? 0) + 1
}

/** The fraction of openings that a key was part of, 0 to 1. */
export function partOf(subject: SubjectState, key: string): number {
  return subject.openings === 0 ? 0 : Math.min(1, (subject.members[key] ?? 0) / subject.openings)
}

function open(subject: SubjectState): void {
  subject.openings = subject.openings * memberFade + 1
  for (const [key, weight] of Object.entries(subject.members)) {
    const next = weight * memberFade
    if (next < 0.05) delete subject.members[key]
    else subject.members[key] = next
  }
}

/** An occurrence belongs to the pattern with the nearest time, or forms a new one with unassigned others. */
function occur(subject: SubjectState, local: number): void {
  const near = subject.patterns
    .map((pattern) => ({ pattern, ...nearest(pattern, local) }))
    .filter(({ offset }) => Math.abs(offset) <= reachMs)
    .sort((a, b) => Math.abs(a.offset) - Math.abs(b.offset))[0]
  if (near !== undefined) {
    hit(near.pattern, near.day, near.offset)
    return
  }
  subject.loose.push(local)
  if (subject.loose.length > maxLoose) subject.loose.shift()
  if (!move(subject, local)) find(subject, local)
}

/** Occurrences on three days at the same time are a pattern, judged from its first day on. */
function find(subject: SubjectState, local: number): void {
  const same = subject.loose.filter((other) => local - other <= lookBackDays * dayMs && apart(other, local) <= reachMs)
  const byDay = new Map(same.map((at) => [Math.round((at - local) / dayMs), at]))
  if (byDay.size < leastSupport) return
  const times = [...byDay.values()].sort((a, b) => a - b)
  const sorted = times.map((at) => at - local - Math.round((at - local) / dayMs) * dayMs).sort((a, b) => a - b)
  const middle = sorted[Math.floor(sorted.length / 2)]!
  const first = newPattern(local + middle, 0)
  const pattern = newPattern(local + middle, nearest(first, times[0]!).day)
  for (const at of times) {
    const { day, offset } = nearest(pattern, at)
    hit(pattern, day, offset)
  }
  subject.loose = subject.loose.filter((at) => !same.includes(at))
  subject.patterns.push(pattern)
  if (subject.patterns.length <= maxPatterns) return
  // Drops the one that was seen longest ago.
  const oldest = subject.patterns.reduce((a, b) => (lastDay(b) < lastDay(a) ? b : a))
  subject.patterns.splice(subject.patterns.indexOf(oldest), 1)
}

/** A pattern that was expected twice but came at another time, the same both times, has moved there for good. */
function move(subject: SubjectState, local: number): boolean {
  const before = subject.loose.findLast((at) => local - at > dayMs / 2 && apart(at, local) <= reachMs)
  if (before === undefined) return false
  for (const pattern of subject.patterns) {
    const [earlier, later] = [nearest(pattern, before), nearest(pattern, local)]
    passDays(pattern, later.day)
    if (!pattern.expectedMisses.includes(earlier.day)) continue
    if (!pattern.expectedMisses.includes(later.day) && !outlook(pattern, later.day).isTrusted) continue
    moveTo(pattern, later.offset, [earlier.day, later.day])
    subject.loose = subject.loose.filter((at) => at !== local && at !== before)
    return true
  }
  return false
}

/** Days pass on which it does not come; patterns not seen for long are forgotten. */
export function pass(subject: SubjectState, now: number, days: ZoneClock): void {
  const local = days.wallAt(now)
  let isNewDay = false
  for (const pattern of subject.patterns) {
    // A day is over once its time has passed, plus what may be late.
    const day = Math.floor((local - pattern.centre - reachMs) / dayMs) + 1
    if (day <= pattern.judged + 1) continue
    passDays(pattern, day)
    isNewDay = true
  }
  if (!isNewDay) return
  const isKept = (pattern: PatternState) => timeOn(pattern, lastDay(pattern)) > local - forgetDays * dayMs
  if (!subject.patterns.every(isKept)) {
    const kept = subject.patterns.filter(isKept)
    subject.patterns.splice(0, subject.patterns.length, ...kept)
  }
  subject.loose = subject.loose.filter((at) => local - at <= lookBackDays * dayMs)
}

function lastDay({ lastHit }: PatternState): number {
  return lastHit
}

/** The distance between two times of day. */
function apart(a: number, b: number): number {
  const difference = Math.abs(a - b) % dayMs
  return Math.min(difference, dayMs - difference)
}
