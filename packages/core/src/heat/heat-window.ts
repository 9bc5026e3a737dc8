import type { Dict } from '../dict/dict.ts'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { keyName } from '../keys/key-text.ts'
import { Candidate, type HostHeat } from './candidate.ts'
import { HeatRings } from './heat-rings.ts'
import { coldState, type HeatState, type HeatThresholds, isHandled, nextHeatState } from './heat-state.ts'
import { SlotHeat } from './slot-heat.ts'
import { samplingDeviation } from './threshold-sampling.ts'
import { byCountThenKey } from './top-k.ts'
import type { WindowRules } from './window-rules.ts'

/**
 * The heat of every key of one Redis cluster: rings on a progressive dict (`HeatRings`), details of the warm keys, and
 * the heat per slot.
 *
 * From `candidateAt` on, a key has a `Candidate` with its writes, bytes, hosts and state. Crossing an enter level is
 * acted on as the report arrives; all else (cooling, shares) when `evaluate` comes by.
 *
 * Forgetting. `sweep` walks the entries in steps and deletes those whose window has passed; each new key takes two such
 * steps itself. Near the memory bound each new key also drops the coldest of a dozen entries. Candidates are never dropped
 * for a new key: where all of the dozen are, it is the new key that is refused. So cold keys push out cold keys, and no
 * flood of them can make a hot one forgotten.
 */
export interface HeatWindowOptions {
  readonly rules: WindowRules
  /** The time that the window begins at, in milliseconds; `moveTo` goes on from there. */
  readonly startMs: number
  /** Slices of a window. @default 10 */
  readonly slices?: number
  /** Keys at one time. @default 20000000 */
  readonly maxKeys?: number
  /** Memory of entries and keys. @default 2 GiB */
  readonly maxBytes?: number
  /** Keys of which details are kept. @default 65536 */
  readonly maxCandidates?: number
  /** The window of the heat per slot. @default that of `rules[0]` */
  readonly slotWindowMs?: number
  /** @default 0 */
  readonly hashSeed?: number
  /** A key's state changed: on the arrival of a report, in `evaluate`, or in a sweep. */
  readonly onChange?: (change: HeatChange) => void
  /** The thresholds of one key, where they depend on more than its rule, as shares of a node do. */
  readonly thresholdsOf?: (index: number, rule: number, slot: number) => HeatThresholds
  /** A key was named for the first time, or for the first time since it was forgotten. */
  readonly onNewKey?: (index: number) => void
  /** A key is forgotten; its index may be given to another. */
  readonly onForget?: (index: number) => void
}

/** A key's state changed. */
export interface HeatChange {
  readonly index: number
  readonly heat: number
  readonly before: HeatState
  readonly after: HeatState
}

/** A warm or hot key, as the API shows it. */
export interface KeyHeat {
  readonly index: number
  readonly key: string
  readonly rule: number
  /** In the measure and window of its rule. */
  readonly heat: number
  readonly state: HeatState
  /** Since the key became warm, at most one window. */
  readonly count: number
  readonly writes: number
  readonly bytes: number
  /** How far sampling may have moved the heat, up or down: three standard deviations. */
  readonly error: number
  readonly hosts: readonly HostHeat[]
}

const sweepPerNewKey = 2
const evictionSample = 12

/** Windows over all keys, their candidates and slots. Time and rules are passed in. */
export class HeatWindow {
  readonly slices: number
  readonly maxKeys: number
  readonly maxCandidates: number
  readonly dict: Dict
  readonly slots: SlotHeat
  /** The factor that sensors sample with, for the error of what is shown. */
  samplingFactor = 1
  readonly #options: HeatWindowOptions
  readonly #startMs: number
  readonly #rings: HeatRings
  #nowMs: number
  #sweepAt = 0
  #victimSeed = 1
  readonly #candidates = new Map<number, Candidate>()
  #evaluation: IterableIterator<Candidate> | undefined
  readonly #counters = { forgotten: 0, evicted: 0, refused: 0, candidatesRefused: 0 }

  constructor(options: HeatWindowOptions) {
    const { rules, startMs, slices = 10, maxKeys = 20_000_000, maxCandidates = 65_536 } = options
    if (!Number.isInteger(slices) || slices < 10 || slices > 1000) {
      throw new InvalidOptionError('slices', slices, 'a whole number from 10 to 1000')
    }
    this.#options = options
    this.slices = slices
    this.maxKeys = maxKeys
    this.maxCandidates = maxCandidates
    this.#startMs = startMs
    this.#nowMs = startMs
    this.#rings = new HeatRings(rules, slices, options.maxBytes ?? 2 ** 31, options.hashSeed ?? 0)
    this.#rings.onRestart = (index) => this.#candidates.get(index)?.restart()
    this.dict = this.#rings.dict
    this.slots = new SlotHeat(options.slotWindowMs ?? rules.rules[0]!.windowMs, slices)
  }

  /** Keys at this time. */
  get size(): number {
    return this.dict.size
  }

  get candidateCount(): number {
    return this.#candidates.size
  }

  /**
   * Keys whose window passed, keys dropped for new ones, new keys refused for lack of memory, and keys whose details
   * found no room.
   */
  get counters(): Readonly<{ forgotten: number; evicted: number; refused: number; candidatesRefused: number }> {
    return this.#counters
  }

  get nowMs(): number {
    return this.#nowMs
  }

  /** Moves the time on; a time before the last one is taken for that one. */
  moveTo(nowMs: number): void {
    if (nowMs <= this.#nowMs) return
    this.#nowMs = nowMs
    this.#rings.moveTo(nowMs - this.#startMs)
    this.slots.moveTo(nowMs - this.#startMs)
  }

  /** Adds one row of a report; gives the key's index, or -1 where it was refused. `host` is a number, or -1. */
  add(
    bytes: Uint8Array,
    start: number,
    end: number,
    count: number,
    writes: number,
    byteCount: number,
    host: number,
    hash: number = this.dict.hash(bytes, start, end),
  ): number {
    const { dict } = this
    const rings = this.#rings
    let index = dict.findOrInsert(bytes, start, end, hash)
    if (index < 0 || dict.wasInserted) {
      index = this.#begin(index, bytes, start, end)
      if (index < 0) return -1
    }
    const heat = rings.add(index, count, writes, byteCount)
    this.slots.add(rings.slotOf(index), count)
    if (heat >= rings.rules.candidateAt[rings.ruleOf(index)]! || rings.isMarked(index)) {
      this.#warm(index, heat, host, count, writes, byteCount)
    }
    return index
  }

  /** A key's heat in its window now. */
  heatOf(index: number): number {
    return this.#rings.heatOf(index)
  }

  /** A key's slices, newest first, and after them how many milliseconds ago the newest began: `slices + 1` numbers. */
  slicesOf(index: number, into: Float64Array): void {
    this.#rings.slicesOf(index, into)
  }

  /** The index of a key, or -1. */
  find(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
    return this.dict.find(bytes, start, end, this.dict.hash(bytes, start, end))
  }

  /** The index of a key's rule. */
  ruleOf(index: number): number {
    return this.#rings.ruleOf(index)
  }

  slotOf(index: number): number {
    return this.#rings.slotOf(index)
  }

  /** The key's name. */
  keyOf(index: number): string {
    return keyName(this.dict.keyAt(index))
  }

  stateOf(index: number): HeatState {
    return this.#candidates.get(index)?.state ?? coldState
  }

  /** A warm or hot key with its details; undefined for a cold one. */
  details(index: number, hostCount = 5): KeyHeat | undefined {
    const candidate = this.#candidates.get(index)
    if (candidate === undefined) return undefined
    const heat = this.heatOf(index)
    const rule = this.ruleOf(index)
    const sums = candidate.sums(this.#rings.rules.slice[rule]!)
    const hosts = candidate.topHosts(hostCount)
    const error = 3 * samplingDeviation(heat, this.samplingFactor)
    return { index, key: this.keyOf(index), rule, heat, state: candidate.state, ...sums, error, hosts }
  }

  /** The hottest candidates by accesses in their windows; ties by key. */
  top(k: number, hostCount = 5): KeyHeat[] {
    const all: { index: number; key: string; count: number }[] = []
    for (const { index } of this.#candidates.values()) {
      all.push({ index, key: this.keyOf(index), count: this.heatOf(index) })
    }
    return all
      .sort(byCountThenKey)
      .slice(0, k)
      .map(({ index }) => this.details(index, hostCount)!)
  }

  /** Indices of all warm and hot keys; the window may change meanwhile. */
  *candidates(): Generator<number> {
    for (const { index } of this.#candidates.values()) yield index
  }

  /** Takes new rules; entries are matched again as they are touched or swept. */
  setRules(rules: WindowRules): void {
    while (!this.#rings.canChangeRules) this.#sweepStep(65_536)
    this.#rings.setRules(rules)
  }

  /** Looks at up to `maxCandidates` candidates, where the last call ended; true while the round is not over. */
  evaluate(maxCandidates: number = Number.POSITIVE_INFINITY): boolean {
    this.#evaluation ??= this.#candidates.values()
    for (let left = maxCandidates; left > 0; left--) {
      const { done, value: candidate } = this.#evaluation.next()
      if (done || candidate === undefined) {
        this.#evaluation = undefined
        return false
      }
      this.evaluateKey(candidate.index)
    }
    return true
  }

  /** Looks at one key: its state may change, and a candidate that is cold again is given up. */
  evaluateKey(index: number): void {
    const candidate = this.#candidates.get(index)
    if (candidate === undefined) return
    const heat = this.heatOf(index)
    this.#advance(candidate, heat)
    const isCold = candidate.state.phase === 'cold' && heat < this.#rings.rules.candidateAt[this.ruleOf(index)]! / 2
    if (isCold) this.#dropCandidate(candidate)
  }

  /** Looks at up to `maxEntries` entries and forgets the idle ones; true while the walk is not at its end. */
  sweep(maxEntries: number): boolean {
    this.dict.rehash(maxEntries)
    return this.#sweepStep(maxEntries)
  }

  #sweepStep(maxEntries: number, spared = -1): boolean {
    for (let left = maxEntries; left > 0; left--) {
      const index = this.dict.next(this.#sweepAt)
      if (index < 0) {
        this.#sweepAt = 0
        this.#rings.passDone()
        return false
      }
      this.#sweepAt = index + 1
      if (index !== spared && this.#isIdle(index)) this.#forget(index, 'forgotten')
    }
    return true
  }

  #isIdle(index: number): boolean {
    if (this.heatOf(index) > 0) return false
    const candidate = this.#candidates.get(index)
    if (candidate === undefined) return true
    this.evaluateKey(index)
    return !this.#candidates.has(index)
  }

  #forget(index: number, why: 'forgotten' | 'evicted'): void {
    this.#counters[why]++
    this.#options.onForget?.(index)
    this.dict.deleteAt(index)
  }

  /** Fits a new entry out; where the dict refused it (-1), makes room first. */
  #begin(inserted: number, bytes: Uint8Array, start: number, end: number): number {
    const { dict } = this
    let index = inserted
    if (index < 0 || dict.size > this.maxKeys || dict.isNearlyFull) {
      dict.packTightly()
      const hasRoom = this.#evict(index)
      if (index < 0) index = dict.findOrInsert(bytes, start, end, dict.hash(bytes, start, end))
      else if (!hasRoom && dict.size > this.maxKeys) {
        dict.deleteAt(index)
        index = -1
      }
      if (index < 0) {
        this.#counters.refused++
        return -1
      }
    }
    this.#rings.begin(index, bytes, start, end)
    this.#sweepStep(sweepPerNewKey, index)
    this.#options.onNewKey?.(index)
    return index
  }

  /** Drops the coldest of a few entries that are no candidates; false where all are. */
  #evict(spared: number): boolean {
    let coldest = -1
    let least = Number.POSITIVE_INFINITY
    for (let left = evictionSample; left > 0 && least > 0; left--) {
      // Anywhere, not under the sweep's hand: neighbours came together and are often alike, hot ones too.
      this.#victimSeed = (Math.imul(this.#victimSeed, 1_664_525) + 1_013_904_223) >>> 0
      const index = this.dict.pick(this.#victimSeed)
      if (index === spared || this.#rings.isMarked(index)) continue
      const heat = this.heatOf(index)
      if (heat >= least) continue
      coldest = index
      least = heat
    }
    if (coldest >= 0) this.#forget(coldest, 'evicted')
    return coldest >= 0
  }

  /** The path of rows of warm and hot keys. */
  #warm(index: number, heat: number, host: number, count: number, writes: number, bytes: number): void {
    const candidate = this.#candidates.get(index) ?? this.#newCandidate(index)
    if (candidate === undefined) return
    candidate.add(this.#rings.lastSlice, host, count, writes, bytes)
    if (heat >= candidate.nextEnter) this.#advance(candidate, heat)
  }

  #newCandidate(index: number): Candidate | undefined {
    if (this.#candidates.size >= this.maxCandidates && !this.#dropColdCandidates()) {
      this.#counters.candidatesRefused++
      return undefined
    }
    const candidate = new Candidate(index, this.slices)
    candidate.nextEnter = this.#thresholdsOf(index).levels[0]?.enter ?? Number.POSITIVE_INFINITY
    this.#candidates.set(index, candidate)
    this.#rings.setMark(index, true)
    return candidate
  }

  /** Gives up the coldest eighth of the candidates that are not handled; false where all are. */
  #dropColdCandidates(): boolean {
    const unhandled = [...this.#candidates.values()].filter(({ state }) => !isHandled(state))
    const relativeHeat = new Map(
      unhandled.map((candidate) => [candidate, this.heatOf(candidate.index) / candidate.nextEnter]),
    )
    unhandled.sort((a, b) => relativeHeat.get(a)! - relativeHeat.get(b)! || a.index - b.index)
    for (const candidate of unhandled.slice(0, Math.ceil(this.maxCandidates / 8))) this.#dropCandidate(candidate)
    return unhandled.length > 0
  }

  #dropCandidate(candidate: Candidate): void {
    const before = candidate.state
    this.#candidates.delete(candidate.index)
    this.#rings.setMark(candidate.index, false)
    if (before.phase === 'cold') return
    this.#options.onChange?.({ index: candidate.index, heat: this.heatOf(candidate.index), before, after: coldState })
  }

  #thresholdsOf(index: number): HeatThresholds {
    const rule = this.ruleOf(index)
    return this.#options.thresholdsOf?.(index, rule, this.slotOf(index)) ?? this.#rings.rules.rule(rule).thresholds
  }

  #advance(candidate: Candidate, heat: number): void {
    const before = candidate.state
    const thresholds = this.#thresholdsOf(candidate.index)
    const after = nextHeatState(before, heat, thresholds, this.#nowMs)
    const level = isHandled(after) ? after.level + 1 : 0
    candidate.nextEnter = thresholds.levels[level]?.enter ?? Number.POSITIVE_INFINITY
    if (after === before) return
    candidate.state = after
    const isSame =
      before.phase === after.phase && (!isHandled(before) || before.level === (after as typeof before).level)
    if (!isSame) this.#options.onChange?.({ index: candidate.index, heat, before, after })
  }
}
