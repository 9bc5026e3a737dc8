import { type Clock, type HistoryEvent, keyText, type TableEntry, TimingWheel } from '@firebreak/core'
import { actingLevel, type Rule, type RuleLevel } from '@firebreak/core/rules'
import type { LevelNow } from '../auto/auto-levels.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { AccessTotals } from './access-totals.ts'
import type { StrategyChooser } from './choose-strategy.ts'
import { type HandledKey, type HeatDecider, handledOf } from './heat-decider.ts'
import { type HotState, isHeldFromObserve } from './hot-state.ts'
import { isEntered, isHeld, readLevel } from './read-level.ts'
import { coolingReason, hotReason, type LevelReading } from './reason.ts'
import { trackReason } from './track-reason.ts'

/** Where decisions go: the strategy table. */
export interface DecisionSink {
  /** The key is hot for these services, or its entry changed. */
  set(track: HeatTrack, entry: TableEntry): void
  remove(track: HeatTrack): void
}

export interface DeciderOptions {
  readonly clock: Clock
  readonly settleMs: number
  readonly settleJitterMs: number
  /** How long an entry lives without being extended. */
  readonly entryTtlMs: number
  readonly tickMs: number
  readonly random: () => number
  readonly sink: DecisionSink
  readonly totals: AccessTotals
  /** A level as it applies to a key at a moment. */
  readonly levelNow: LevelNow
  readonly chooseStrategy: StrategyChooser
  readonly processCount: (services: ReadonlySet<string>) => number
  readonly record: (event: HistoryEvent) => void
}

type ActiveState = Exclude<HotState, { phase: 'warming' }>

/**
 * Moves keys between cold, warming, hot and cooling.
 *
 * A count that crosses its threshold is seen on arrival (`onHeat`) and decided at once. Everything else is decided by
 * evaluation: shares (which only make sense once every host has reported), levels left, keys cooled, entries extended.
 */
export class Decider implements HeatDecider {
  readonly #options: DeciderOptions
  /**
   * A key's first report arms its evaluation after `settleMs` plus a random part of `settleJitterMs`, so that every host
   * has reported by then and evaluations never come all at once.
   */
  readonly #wheel: TimingWheel<HeatTrack>
  /** All tracks that are not cold. */
  readonly #active = new Set<HeatTrack>()
  #rules: ReadonlySet<Rule> = new Set()

  constructor(options: DeciderOptions) {
    this.#options = options
    const { clock, tickMs } = options
    this.#wheel = new TimingWheel({ clock, tickMs, onDue: (track) => this.#settled(track) })
  }

  active(): Iterable<HeatTrack> {
    return this.#active
  }

  /** The rules in force; a track armed under another rule is not evaluated. */
  setRules(rules: readonly Rule[]): void {
    this.#rules = new Set(rules)
  }

  /** Checks a key whose heat just grew. */
  onHeat(track: HeatTrack, now: number): void {
    const { rule, state } = track
    const { levelNow } = this.#options
    if (rule === undefined) return
    if (state === undefined || state.phase === 'warming') {
      // A key is evaluated once after its first report, and again only if that can change something.
      let needsEvaluation = !track.isSettled
      for (let index = rule.levels.length - 1; index >= 0; index--) {
        const level = levelNow(track, rule.levels[index]!, now)
        const reading = readLevel(track, level, now)
        needsEvaluation ||= level.enterShare !== undefined || reading.heat >= level.exit
        if (isEntered(level, reading)) {
          this.#enter(track, rule, index, hotReason(rule, level, reading), now)
          return
        }
      }
      if (needsEvaluation) this.#arm(track)
      return
    }
    const next = this.#enteredLevel(track, rule, now)
    if (next !== undefined && next.index > state.level) this.#changeLevel(track, rule, state, next.index, now)
  }

  /** A process reports that the key crossed the threshold there; true if that makes it hot. */
  confirmClaim(track: HeatTrack, heat: number, now: number): boolean {
    const { rule, state } = track
    if (rule === undefined || rule.mode !== 'on') return false
    if (state !== undefined && state.phase !== 'warming') return true
    const index = rule.levels.findLastIndex((level) => heat >= level.enter)
    if (index < 0) return false
    const level = rule.levels[index]!
    const reason = hotReason(rule, level, { heat, share: undefined })
    this.#enter(track, rule, index, reason, now)
    this.#record(track, 'claim', now, `${reason}, seen by one process`)
    return true
  }

  /** Evaluates what is due, and all keys that are not cold. */
  tick(now: number): void {
    this.#wheel.advance()
    for (const track of this.#active) this.#evaluate(track, now)
  }

  /** A key that was hot before a restart; it gets `graceMs` to be seen again. */
  restore(track: HeatTrack, entry: TableEntry, now: number, graceMs: number, level = 0): void {
    const { rule } = track
    if (rule === undefined || rule.mode !== 'on') return
    const until = now + Math.max(this.#options.entryTtlMs, graceMs)
    const restored = { ...entry, until }
    // Held only for the grace period: its window is empty although the key may be hot.
    const held = { levelSince: now - rule.minHoldMs, heldUntil: now + graceMs }
    track.state = { phase: 'hot', since: entry.since, level, ...held, entry: restored, ratePerSecondBefore: 0 }
    this.#active.add(track)
    this.#options.sink.set(track, restored)
  }

  warm(track: HeatTrack, reason: string, now: number, holdMs: number): void {
    const { rule, state } = track
    if (rule === undefined || rule.mode !== 'on') return
    // A key that is already hot keeps its level.
    const level = state === undefined || state.phase === 'warming' ? 0 : state.level
    const acting = actingLevel(rule, level) ?? actingLevel(rule)
    if (acting === undefined) return
    const entry = this.#entry(track, rule, acting.level, reason, now, now)
    this.restore(track, entry, now, holdMs, acting.index)
    this.#record(track, 'prewarm', now, reason)
  }

  /** The rule of an active track has changed or is gone. */
  reconsider(track: HeatTrack, rule: Rule | undefined, now: number): void {
    const { state } = track
    const before = track.rule
    if (state === undefined || before === undefined) return
    if (rule === undefined || !track.fits(rule) || rule.mode !== before.mode) {
      const text = rule === undefined ? `rule \`${before.id}\` no longer applies` : `rule \`${before.id}\` was changed`
      this.#leave(track, now, 'rollback', text)
      return
    }
    track.rule = rule
    if (state.phase === 'warming') return
    const level = Math.min(state.level, rule.levels.length - 1)
    this.#changeLevel(track, rule, state, level, now)
    this.#evaluate(track, now)
  }

  #arm(track: HeatTrack): void {
    if (track.isArmed) return
    const { settleMs, settleJitterMs, random } = this.#options
    // If all timers are taken, the next report tries again.
    track.isArmed = this.#wheel.set(settleMs + random() * settleJitterMs, track)
  }

  #settled(track: HeatTrack): void {
    track.isArmed = false
    track.isSettled = true
    if (track.rule !== undefined && this.#rules.has(track.rule)) this.#evaluate(track, this.#options.clock.now())
  }

  #evaluate(track: HeatTrack, now: number): void {
    const { rule, state } = track
    if (rule === undefined) return
    const { totals, levelNow } = this.#options
    if (state !== undefined && state.phase !== 'warming') {
      this.#evaluateHot(track, rule, state, now)
      return
    }
    const entered = this.#enteredLevel(track, rule, now, totals)
    if (entered !== undefined) {
      this.#enter(track, rule, entered.index, hotReason(rule, entered.level, entered.reading), now)
      return
    }
    const isWarm = rule.levels.some((level) => {
      const current = levelNow(track, level, now)
      return isHeld(current, readLevel(track, current, now, totals))
    })
    if (isWarm && state === undefined) {
      track.state = { phase: 'warming', since: now }
      this.#active.add(track)
    } else if (!isWarm && state !== undefined) {
      track.state = undefined
      this.#active.delete(track)
    }
  }

  #evaluateHot(track: HeatTrack, rule: Rule, state: ActiveState, now: number): void {
    const { totals, entryTtlMs, sink, levelNow } = this.#options
    const entered = this.#enteredLevel(track, rule, now, totals)
    if (entered !== undefined && entered.index > state.level) {
      this.#changeLevel(track, rule, state, entered.index, now)
      return
    }
    const held = rule.levels.findLastIndex((level, index) => {
      if (index > state.level) return false
      const current = levelNow(track, level, now)
      return isHeld(current, readLevel(track, current, now, totals))
    })
    const mayLeaveLevel = now - state.levelSince >= rule.minHoldMs
    if (held < 0 && mayLeaveLevel && now >= (state.heldUntil ?? 0)) {
      this.#leave(track, now, 'cooled', this.#cooledText(track, rule, state, now))
      return
    }
    if (held >= 0 && held < state.level && mayLeaveLevel && now >= (state.heldUntil ?? 0)) {
      this.#changeLevel(track, rule, state, held, now)
      return
    }
    const phase = held < 0 ? 'cooling' : 'hot'
    let entry = state.entry
    if (entry.until - now < entryTtlMs / 2) {
      entry = { ...entry, until: now + entryTtlMs }
      if (rule.mode === 'on') sink.set(track, entry)
      if (phase === 'hot')
        this.#record(track, 'extended', now, `still hot: ${trackReason(track, totals, now, levelNow)}`)
    }
    if (phase !== state.phase || entry !== state.entry) track.state = { ...state, phase, entry }
  }

  #enteredLevel(
    track: HeatTrack,
    rule: Rule,
    now: number,
    totals?: AccessTotals,
  ): { readonly index: number; readonly level: RuleLevel; readonly reading: LevelReading } | undefined {
    for (let index = rule.levels.length - 1; index >= 0; index--) {
      const level = this.#options.levelNow(track, rule.levels[index]!, now)
      const reading = readLevel(track, level, now, totals)
      if (isEntered(level, reading)) return { index, level, reading }
    }
    return undefined
  }

  #enter(track: HeatTrack, rule: Rule, level: number, reason: string, now: number): void {
    const entry = this.#entry(track, rule, rule.levels[level]!, reason, now, now)
    const ratePerSecondBefore = (track.heat('accesses', now) * 1000) / track.windowMs
    track.state = { phase: 'hot', since: now, level, levelSince: now, entry, ratePerSecondBefore }
    this.#active.add(track)
    if (rule.mode === 'on') this.#options.sink.set(track, entry)
    this.#record(track, rule.mode === 'on' ? 'hot' : 'shadow', now, reason)
  }

  #changeLevel(track: HeatTrack, rule: Rule, state: ActiveState, index: number, now: number): void {
    const level = this.#options.levelNow(track, rule.levels[index]!, now)
    const reading = readLevel(track, level, now, this.#options.totals)
    const reason = isEntered(level, reading) ? hotReason(rule, level, reading) : state.entry.reason
    const entry = this.#entry(track, rule, level, reason, state.since, now)
    const isSame = JSON.stringify(entry.strategy) === JSON.stringify(state.entry.strategy)
    const levelSince = index === state.level ? state.levelSince : now
    track.state = { ...state, level: index, levelSince, entry }
    if (isSame && index === state.level) return
    if (rule.mode === 'on') this.#options.sink.set(track, entry)
    this.#record(track, 'strategy', now, `${entry.strategy.strategy} at level ${index + 1}: ${reason}`)
  }

  handled(): Iterable<HandledKey> {
    return handledOf(this.#active)
  }

  rechoose(track: HeatTrack, now: number, why?: string): void {
    const { rule, state } = track
    if (rule === undefined || state === undefined || state.phase === 'warming') return
    const level = this.#options.levelNow(track, rule.levels[state.level]!, now)
    const reading = readLevel(track, level, now, this.#options.totals)
    const reason = isEntered(level, reading) ? hotReason(rule, level, reading) : state.entry.reason
    const entry = this.#entry(track, rule, level, reason, state.since, now)
    if (entry.strategy.strategy === state.entry.strategy.strategy) return
    if (why === undefined && isHeldFromObserve(state, entry.strategy, now)) return
    track.state = { ...state, levelSince: now, entry }
    if (rule.mode === 'on') this.#options.sink.set(track, entry)
    this.#record(
      track,
      why === undefined ? 'strategy' : 'rollback',
      now,
      why === undefined ? entry.reason : `${why}; now ${entry.strategy.strategy}`,
    )
  }

  #leave(track: HeatTrack, now: number, kind: 'cooled' | 'rollback', text: string): void {
    const wasHot = track.state !== undefined && track.state.phase !== 'warming'
    track.state = undefined
    this.#active.delete(track)
    if (!wasHot) return
    this.#options.sink.remove(track)
    this.#record(track, kind, now, text)
  }

  #cooledText(track: HeatTrack, rule: Rule, state: ActiveState, now: number): string {
    const level = this.#options.levelNow(track, rule.levels[0]!, now)
    const seconds = Math.round((now - state.since) / 1000)
    return `cooled after ${seconds} s: ${coolingReason(rule, level, readLevel(track, level, now, this.#options.totals))}`
  }

  #entry(track: HeatTrack, rule: Rule, level: RuleLevel, reason: string, since: number, now: number): TableEntry {
    const { chooseStrategy, processCount, entryTtlMs } = this.#options
    const { redisClusterId, key } = track
    const { strategy, why } = chooseStrategy({
      redisClusterId,
      key,
      rule,
      level,
      processCount: processCount(track.services),
    })
    const whole = why === undefined ? reason : `${reason}; ${why}`
    return { redisClusterId, key, strategy, ruleId: rule.id, reason: whole, since, until: now + entryTtlMs }
  }

  #record(track: HeatTrack, kind: HistoryEvent['kind'], at: number, text: string): void {
    const { redisClusterId, key, rule } = track
    this.#options.record({ at, kind, redisClusterId, key: keyText(key), ruleId: rule?.id ?? '', text })
  }
}
