import type { Strategy, StrategyName, TableEntry } from '@firebreak/core'
import { actingLevel, type Rule, type RuleLevel } from '@firebreak/core/rules'
import type { DeciderOptions } from '../decide/decider.ts'
import { type HandledKey, type HeatDecider, handledOf } from '../decide/heat-decider.ts'
import { isHeldFromObserve } from '../decide/hot-state.ts'
import { isEntered, isHeld, readLevel } from '../decide/read-level.ts'
import { hotReason } from '../decide/reason.ts'
import type { KeyEffects } from '../fleet/key-effects.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import { DecisionHistory } from './decision-history.ts'
import type { BoardDecision, BoardState, BoardTable, HeatBoard, PostAnswer } from './heat-board.ts'
import { type PendingPost, PostQueue } from './post-queue.ts'
import { measuringOf, parseTrackId, type TrackName, trackId } from './track-id.ts'

export interface SharedDeciderOptions extends DeciderOptions {
  readonly board: Pick<HeatBoard, 'bucketOf'>
  /** This hub's name on the board. */
  readonly boardId: string
  readonly effects: KeyEffects
  /** True for a rule of a later version. */
  readonly isUnknownRule: (ruleId: string) => boolean
  /** The track of a key under the rule in force here; undefined if that rule does not apply. */
  readonly findTrack: (name: TrackName) => HeatTrack | undefined
  /** A key is hot: its hosts and last minute should be kept. */
  readonly onHot: (track: HeatTrack) => void
  /** A hub found that a strategy does not help a key. */
  readonly onGivenUp: (track: HeatTrack, name: StrategyName, at: number) => void
  /** Something is to be posted before the next tick. */
  readonly urge: () => void
}

/** How long the other hubs' counts of a key remain valid after they were last received. */
const othersMs = 1500

/**
 * Decides together with other hubs: posts what matters to the board, and carries out the board's decisions.
 *
 * Nothing becomes hot or cold here on its own, with one exception: while a bucket of the board is unreachable, its hot
 * keys stay hot, and a key that crosses its threshold on this hub alone becomes hot here. When the board recovers, both
 * are posted to it.
 */
export class SharedDecider implements HeatDecider {
  readonly #options: SharedDeciderOptions
  readonly #history: DecisionHistory
  readonly #queue: PostQueue
  readonly #active = new Map<string, HeatTrack>()
  readonly #away = new Set<number>()
  /** The names of all hubs, sorted. */
  #hubs: readonly string[]
  #clockOffsetMs = 0

  constructor(options: SharedDeciderOptions) {
    this.#options = options
    this.#hubs = [options.boardId]
    this.#history = new DecisionHistory(options.record, options.totals, options.levelNow)
    this.#queue = new PostQueue({ ...options, bucketOf: (id) => options.board.bucketOf(id) })
  }

  active(): Iterable<HeatTrack> {
    return this.#active.values()
  }

  handled(): Iterable<HandledKey> {
    return handledOf(this.#active.values())
  }

  setRules(): void {
    // A track watched under another rule moves to the new one when it is next touched.
  }

  setOtherHubs(others: readonly string[]): void {
    this.#hubs = [this.#options.boardId, ...others].sort()
    this.#queue.setHubCount(this.#hubs.length)
  }

  /** Offset from the board's clock to this hub's. */
  setClockOffset(offsetMs: number): void {
    this.#clockOffsetMs = offsetMs
  }

  setAway(bucket: number, isAway: boolean): void {
    if (isAway) this.#away.add(bucket)
    else this.#away.delete(bucket)
  }

  onHeat(track: HeatTrack, now: number): void {
    const { rule, state } = track
    if (rule === undefined) return
    const isActive = state !== undefined && state.phase !== 'warming'
    let watched = this.#queue.get(track)
    if (watched?.rule !== rule) {
      if (!isActive && !this.#queue.isWorth(track, rule, now)) return
      watched = this.#queue.watch(track, rule, now, isActive ? 'hot' : 'no')
      if (watched === undefined) return
    }
    watched.isDirty = true
    if (isActive) return
    const entered = rule.levels.findLastIndex((level) => {
      const current = this.#options.levelNow(track, level, now)
      return isEntered(current, readLevel(track, current, now))
    })
    if (entered < 0) return
    if (this.#away.has(watched.bucket)) {
      this.#enterAlone(track, rule, watched.id, entered, now)
    } else if (!watched.isUrged) {
      // Crossing a threshold does not wait for the tick.
      watched.isUrged = true
      this.#options.urge()
    }
  }

  confirmClaim(track: HeatTrack, heat: number, now: number): boolean {
    const { rule, state } = track
    if (rule === undefined || rule.mode !== 'on') return false
    if (state !== undefined && state.phase !== 'warming') return true
    const index = rule.levels.findLastIndex((level) => heat >= level.enter)
    if (index < 0) return false
    const watched = this.#queue.watch(track, rule, now, 'asked')
    if (watched === undefined) return false
    watched.extras = { ...watched.extras, claimHeat: heat }
    if (this.#away.has(watched.bucket)) this.#enterAlone(track, rule, watched.id, index, now)
    else this.#options.urge()
    return true
  }

  warm(track: HeatTrack, reason: string, now: number, holdMs: number): void {
    const { rule } = track
    if (rule === undefined || rule.mode !== 'on') return
    const acting = actingLevel(rule)
    if (acting === undefined) return
    const strategy = JSON.stringify(this.#choose(track, rule, acting.level))
    const watched = this.#queue.watch(track, rule, now, 'hot')!
    if (this.#away.has(watched.bucket)) {
      this.#enterAlone(track, rule, watched.id, acting.index, now, { holdMs, reason, strategy })
      return
    }
    watched.extras = { ...watched.extras, warm: { holdMs, reason, level: acting.index + 1, strategy } }
    this.#options.urge()
  }

  rechoose(track: HeatTrack, now: number, why?: string): void {
    const { rule, state } = track
    if (rule === undefined || state === undefined || state.phase === 'warming') return
    const id = trackId(track, rule)
    // Only one hub chooses by a key's load: two that weigh different parts of it would overrule each other forever.
    if (this.#isAway(id) || (why === undefined && !this.#chooses(id, track, now))) return
    const before = state.entry.strategy
    const next = this.#choose(track, rule, rule.levels[state.level]!)
    if (next.strategy === before.strategy || (why === undefined && isHeldFromObserve(state, next, now))) return
    const watched = this.#queue.watch(track, rule, now, 'hot')!
    const givenUp = why === undefined ? {} : { givenUp: before.strategy, why }
    const rechoose = { from: JSON.stringify(before), to: JSON.stringify(next), ...givenUp }
    watched.extras = { ...watched.extras, rechoose }
    this.#options.urge()
  }

  /** Shows which keys are cooling, and keeps keys hot while their bucket is unreachable. */
  tick(now: number): void {
    const { entryTtlMs, sink } = this.#options
    for (const [id, track] of this.#active) {
      const { rule, state } = track
      if (rule === undefined || state === undefined || state.phase === 'warming') continue
      const isWarm = rule.levels.some((level, index) => index <= state.level && this.#isHeld(track, level, now))
      let { entry } = state
      if (this.#isAway(id) && entry.until - now < entryTtlMs / 2) {
        entry = { ...entry, until: now + entryTtlMs }
        if (rule.mode === 'on') sink.set(track, entry)
      }
      const phase = isWarm ? 'hot' : 'cooling'
      if (phase !== state.phase || entry !== state.entry) track.state = { ...state, phase, entry }
    }
  }

  restore(): void {
    // The board has the table.
  }

  reconsider(track: HeatTrack, rule: Rule | undefined, now: number): void {
    const before = track.rule
    if (track.state === undefined || before === undefined) return
    if (rule === undefined || !track.fits(rule) || measuringOf(rule) !== measuringOf(before)) {
      const text = rule === undefined ? `rule \`${before.id}\` no longer applies` : `rule \`${before.id}\` was changed`
      const id = trackId(track, before)
      this.#queue.drop(id, text)
      this.#leave(id, track)
      return
    }
    track.rule = rule
    this.onHeat(track, now)
  }

  /** Timers that this hub claimed. */
  due(ids: readonly string[]): void {
    for (const id of ids) {
      const track = this.#options.findTrack(parseTrackId(id))
      const watched = track?.rule && this.#watch(id, track, track.rule)
      if (watched === undefined && this.#isLeftAlone(id)) continue
      if (watched === undefined) this.#queue.drop(id, `rule \`${parseTrackId(id).ruleId}\` no longer applies`)
      else watched.extras = { ...watched.extras, isDue: true }
    }
  }

  /** Evaluates every hot key as if its timer had fired. */
  recheck(): void {
    this.due([...this.#active.keys()])
  }

  /** What to post to the board now, by bucket. */
  takePosts(now: number): Map<number, PendingPost[]> {
    return this.#queue.take((id) => this.#active.has(id), now)
  }

  /** Posts that did not arrive: their windows are posted again; what depends on time recurs by itself. */
  notPosted(posts: readonly PendingPost[]): void {
    this.#queue.putBack(posts)
  }

  /** The board's totals for the posted keys. */
  posted(posts: readonly PendingPost[], { heats }: PostAnswer, now: number): void {
    for (const [index, { track }] of posts.entries()) {
      const heat = heats[index]
      if (track === undefined || heat === undefined) continue
      const others = [
        heat.accesses - track.ownHeat('accesses', now),
        heat.writes - track.ownHeat('writes', now),
        heat.bytes - track.ownHeat('bytes', now),
      ].map((value) => Math.max(0, value)) as [number, number, number]
      track.setOthers(...others, now + othersMs)
      this.#options.effects.setOthers(track.redisClusterId, track.key, heat.othersEffect, now, now + othersMs)
      this.#warm(track, now)
    }
  }

  /** Carries out a decision; false if the key's rule is not in force here. */
  apply(decision: BoardDecision): boolean {
    const { id, kind, state } = decision
    const at = decision.at + this.#clockOffsetMs
    const isOurs = decision.by === this.#options.boardId
    if (kind === 'cooled' || kind === 'rollback') {
      const track = this.#active.get(id)
      if (track !== undefined) this.#leave(id, track)
      if (isOurs) this.#history.end(decision, track, at)
      return true
    }
    const track = this.#setHot(id, state)
    if (track === undefined) return this.#isLeftAlone(id)
    if (isOurs) this.#history.hot(decision, track, at)
    return true
  }

  /** Loads the whole table of a bucket; keys that are only hot here are posted to the board, or released. */
  reconcile(bucket: number, { states }: BoardTable, isTrusted: boolean): void {
    for (const [id, state] of states) {
      if (this.#setHot(id, state) === undefined && !this.#isLeftAlone(id))
        this.#queue.drop(id, `rule \`${parseTrackId(id).ruleId}\` no longer applies`)
    }
    for (const [id, track] of [...this.#active]) {
      if (states.has(id) || this.#options.board.bucketOf(id) !== bucket) continue
      if (isTrusted) this.#leave(id, track)
      else this.#adopt(id, track)
    }
  }

  /** The board lost a key that is hot here. */
  #adopt(id: string, track: HeatTrack): void {
    const { state, rule } = track
    if (state === undefined || state.phase === 'warming') return
    const watched = this.#watch(id, track, rule!)
    if (watched === undefined) return
    const { level, since, heldUntil, entry } = state
    const onBoard = (time: number) => Math.round(time - this.#clockOffsetMs)
    const adopt = {
      level: level + 1,
      since: onBoard(since),
      strategy: JSON.stringify(entry.strategy),
      ...(heldUntil !== undefined && { heldUntil: onBoard(heldUntil), reason: entry.reason }),
    }
    watched.extras = { ...watched.extras, adopt }
  }

  #watch(id: string, track: HeatTrack, rule: Rule) {
    return this.#queue.watch(track, rule, this.#options.clock.now(), this.#active.has(id) ? 'hot' : 'no')
  }

  #isAway(id: string): boolean {
    return this.#away.has(this.#options.board.bucketOf(id))
  }

  /** True if a hub of a later version made the key hot under a rule unknown here: that hub is in charge of it. */
  #isLeftAlone(id: string): boolean {
    return this.#options.isUnknownRule(parseTrackId(id).ruleId)
  }

  /** True on the one hub that weighs the key's load, provided that it sees enough of it. */
  #chooses(id: string, track: HeatTrack, now: number): boolean {
    const { board, boardId } = this.#options
    const count = this.#hubs.length
    if (this.#hubs[board.bucketOf(id) % count] !== boardId) return false
    return track.ownHeat('accesses', now) * count * 2 >= track.heat('accesses', now)
  }

  #choose({ redisClusterId, key, services }: HeatTrack, rule: Rule, level: RuleLevel): Strategy {
    const { chooseStrategy, processCount } = this.#options
    return chooseStrategy({ redisClusterId, key, rule, level, processCount: processCount(services) }).strategy
  }

  #isHeld(track: HeatTrack, level: RuleLevel, now: number): boolean {
    const { totals, levelNow } = this.#options
    const current = levelNow(track, level, now)
    return isHeld(current, readLevel(track, current, now, totals))
  }

  #warm(track: HeatTrack, now: number): void {
    const { rule, state } = track
    if (rule === undefined || (state !== undefined && state.phase !== 'warming')) return
    const isWarm = rule.levels.some((level) => this.#isHeld(track, level, now))
    if (isWarm !== (state !== undefined)) track.state = isWarm ? { phase: 'warming', since: now } : undefined
  }

  #enterAlone(
    track: HeatTrack,
    rule: Rule,
    id: string,
    index: number,
    now: number,
    asked?: { readonly holdMs: number; readonly reason: string; readonly strategy: string },
  ): void {
    const level = this.#options.levelNow(track, rule.levels[index]!, now)
    const { heat } = readLevel(track, level, now)
    const at = now - this.#clockOffsetMs
    this.#setHot(id, {
      level: index + 1,
      since: at,
      levelSince: at,
      until: at + Math.max(this.#options.entryTtlMs, asked?.holdMs ?? 0),
      strategy: asked?.strategy ?? JSON.stringify(this.#choose(track, rule, level)),
      services: [],
      heat,
      ...(asked && { heldUntil: at + asked.holdMs, reason: asked.reason }),
    })
    const reason = asked?.reason ?? hotReason(rule, level, { heat, share: undefined })
    const kind = asked !== undefined ? 'prewarm' : rule.mode === 'on' ? 'hot' : 'shadow'
    this.#history.add(track, kind, now, `${reason}, by this hub alone`)
  }

  #setHot(id: string, state: BoardState): HeatTrack | undefined {
    const track = this.#active.get(id) ?? this.#options.findTrack(parseTrackId(id))
    const rule = track?.rule
    if (track === undefined || rule === undefined) return undefined
    const { redisClusterId, key } = track
    const here = (time: number) => time + this.#clockOffsetMs
    const index = Math.min(state.level, rule.levels.length) - 1
    const level = this.#options.levelNow(track, rule.levels[index]!, this.#options.clock.now())
    const byHeat = hotReason(rule, level, { heat: state.heat, share: state.share })
    const reason = state.reason ?? byHeat
    const strategy = JSON.parse(state.strategy) as Strategy
    const [since, until] = [here(state.since), here(state.until)]
    const entry: TableEntry = { redisClusterId, key, strategy, ruleId: rule.id, reason, since, until }
    const before = track.state?.phase === 'warming' ? undefined : track.state
    const ratePerSecondBefore = before?.ratePerSecondBefore ?? (state.heat * 1000) / track.windowMs
    const held = state.heldUntil === undefined ? {} : { heldUntil: here(state.heldUntil) }
    const levelSince = here(state.levelSince)
    track.state = { phase: 'hot', since, level: index, levelSince, ...held, entry, ratePerSecondBefore }
    for (const [name, at] of Object.entries(state.givenUp ?? {}))
      this.#options.onGivenUp(track, name as StrategyName, here(at))
    this.#active.set(id, track)
    // Services that only this hub has seen touching the key: the next post tells the board.
    if ([...track.services].some((service) => !state.services.includes(service))) {
      const watched = this.#watch(id, track, rule)
      if (watched !== undefined) watched.isDirty = true
    }
    for (const service of state.services) if (!track.services.has(service)) track.addService(service)
    if (rule.mode === 'on') this.#options.sink.set(track, entry)
    if (before === undefined) this.#options.onHot(track)
    return track
  }

  #leave(id: string, track: HeatTrack): void {
    track.state = undefined
    this.#active.delete(id)
    const watched = this.#queue.get(track)
    if (watched !== undefined) watched.isUrged = false
    this.#options.sink.remove(track)
  }
}
