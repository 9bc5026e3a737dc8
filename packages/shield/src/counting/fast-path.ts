import type { LocalCacheStrategy } from '@firebreak/core'
import { compilePattern, type KeyMatcher, type Rule } from '@firebreak/core/rules'
import type { BurstWatch } from './access-buffer.ts'

/** A key that this process alone has pushed over a rule's threshold. */
export interface Crossing {
  readonly ruleId: string
  readonly heat: number
  readonly strategy: LocalCacheStrategy
}

interface CompiledRule {
  readonly rule: Rule
  readonly matches: KeyMatcher
}

/** The counts of one candidate, interval by interval. */
interface Candidate {
  /** The hash of the key's bytes, if it was counted by them. */
  readonly hash: number | undefined
  /** Accesses left until it crosses; infinite if it has, or cannot in the next interval. */
  left: number
  readonly intervals: { readonly at: number; readonly count: number; readonly writes: number }[]
}

/**
 * Evaluates the table's rules in the process that counts, so that a key made hot by one process alone is handled there
 * without a round trip to the hub.
 *
 * Only candidates have a window: a key becomes one when it reaches a twentieth of some threshold within one interval.
 * Earlier accesses are not in the window, so a crossing may be seen slightly late but never wrongly; the hub, which
 * sees everything, decides anyway. At most `maxCandidates` are watched; further ones wait for the hub.
 *
 * Crossings are checked when an interval ends. An interval ends early (`isBurst`) when a key is growing fast or a
 * candidate has received the accesses that it lacked, so that a key which creeps over its threshold does not wait
 * either.
 */
export class FastPath implements BurstWatch {
  readonly #serviceId: string
  readonly #redisClusterId: string
  readonly #maxCandidates: number
  readonly #candidates = new Map<string, Candidate>()
  readonly #byHash = new Map<number, Candidate>()
  #rules: readonly CompiledRule[] = []
  #candidateCount = Number.POSITIVE_INFINITY
  /** A key with this many accesses in one interval is growing fast. */
  #fastCount = Number.POSITIVE_INFINITY
  /** The fewest accesses that any candidate lacks. */
  #fewestLeft = Number.POSITIVE_INFINITY
  #longestWindowMs = 0

  constructor(serviceId: string, redisClusterId: string, maxCandidates = 1024) {
    this.#serviceId = serviceId
    this.#redisClusterId = redisClusterId
    this.#maxCandidates = maxCandidates
  }

  get burstCount(): number {
    return Math.min(this.#fastCount, this.#fewestLeft)
  }

  get leftCount(): number {
    return this.#fewestLeft
  }

  isBurst(key: string | number, before: number, count: number): boolean {
    if (before < this.#fastCount && count >= this.#fastCount) return true
    const left = (typeof key === 'number' ? this.#byHash.get(key) : this.#candidates.get(key))?.left
    return left !== undefined && before < left && count >= left
  }

  setRules(rules: readonly Rule[]): void {
    const applying = rules.filter(
      ({ mode, serviceId, redisClusterId }) =>
        mode !== 'off' &&
        (serviceId === '*' || serviceId === this.#serviceId) &&
        (redisClusterId === '*' || redisClusterId === this.#redisClusterId),
    )
    this.#rules = applying.toSorted(byRank).map(compile)
    const lowest = Math.min(...applying.flatMap(({ levels }) => levels.map(({ enter }) => enter ?? Infinity)))
    this.#candidateCount = Math.max(1, lowest / 20)
    this.#fastCount = Math.max(16, Math.ceil(lowest / 8))
    this.#longestWindowMs = Math.max(0, ...applying.map(({ windowMs }) => windowMs))
    if (applying.length > 0) return
    this.#candidates.clear()
    this.#byHash.clear()
  }

  /** A key with fewer accesses in an interval is not a candidate, unless it already is one. */
  get candidateCount(): number {
    return this.#candidateCount
  }

  /** True if `observe` may need the key; nearly every key of an interval ends here, before it gets a name. */
  concerns(count: number, hash: number): boolean {
    return count >= this.#candidateCount || this.isCandidate(hash)
  }

  /** True while a key, by the hash of its bytes, is watched. */
  isCandidate(hash: number): boolean {
    return this.#byHash.size > 0 && this.#byHash.has(hash)
  }

  /** Takes a key's counts of the interval that is ending; returns the crossing if it exceeds a threshold by itself. */
  observe(key: string, count: number, writes: number, now: number, hash?: number): Crossing | undefined {
    // Nearly every key of an interval ends here.
    if (count < this.#candidateCount && this.#candidates.size === 0) return undefined
    let candidate = this.#candidates.get(key)
    if (candidate === undefined) {
      if (count < this.#candidateCount || this.#candidates.size >= this.#maxCandidates) return undefined
      candidate = { hash, left: Number.POSITIVE_INFINITY, intervals: [] }
      this.#candidates.set(key, candidate)
      if (hash !== undefined) this.#byHash.set(hash, candidate)
    }
    candidate.intervals.push({ at: now, count, writes })
    while (candidate.intervals[0]!.at <= now - this.#longestWindowMs) candidate.intervals.shift()
    return this.#judge(key, candidate, now)
  }

  /** The interval has ended: forgets candidates that nobody touched for a window. */
  sweep(now: number): void {
    this.#fewestLeft = Number.POSITIVE_INFINITY
    for (const [key, { intervals, hash, left }] of this.#candidates) {
      const last = intervals.at(-1)
      if (last !== undefined && last.at > now - this.#longestWindowMs) {
        this.#fewestLeft = Math.min(this.#fewestLeft, left)
        continue
      }
      this.#candidates.delete(key)
      // Another candidate with the same hash is added back when it reaches a candidate's share again.
      if (hash !== undefined) this.#byHash.delete(hash)
    }
  }

  #judge(key: string, candidate: Candidate, now: number): Crossing | undefined {
    const { intervals } = candidate
    candidate.left = Number.POSITIVE_INFINITY
    const found = this.#rules.find(({ matches }) => matches(key))
    if (found === undefined || found.rule.mode !== 'on') return undefined
    const { id, windowMs, levels } = found.rule
    const within = intervals.filter(({ at }) => at > now - windowMs)
    const accesses = within.reduce((sum, { count }) => sum + count, 0)
    const writes = within.reduce((sum, interval) => sum + interval.writes, 0)
    const heats = { accesses, reads: accesses - writes, writes, bytes: 0 }
    // Levels rise; the highest that is reached counts.
    const level = levels.findLast(({ enter, measure }) => enter !== undefined && heats[measure ?? 'accesses'] >= enter)
    const strategy = level?.strategies.find((template) => template.strategy === 'LocalCache')
    // Whatever the level measures, it needs at least as many accesses.
    const left = Math.max(1, Math.ceil(levels[0]!.enter - heats[levels[0]!.measure]))
    if (level === undefined && left <= 2 * intervals.at(-1)!.count) candidate.left = left
    if (level === undefined || strategy === undefined) return undefined
    return { ruleId: id, heat: heats[level.measure ?? 'accesses'], strategy: strategy as LocalCacheStrategy }
  }
}

function byRank(a: Rule, b: Rule): number {
  return b.priority - a.priority || (a.id < b.id ? -1 : 1)
}

function compile(rule: Rule): CompiledRule {
  const matches = compilePattern(rule.pattern)
  const exceptions = (rule.except ?? []).map(compilePattern)
  return { rule, matches: (name) => matches(name) && !exceptions.some((except) => except(name)) }
}
