import type { Rule, Strategy, TableEntry } from '@firebreak/core'
import type { DeciderOptions } from '../decide/decider.ts'
import type { HeatDecider } from '../decide/heat-decider.ts'
import { isEntered, isHeld, readLevel } from '../decide/read-level.ts'
import { hotReason } from '../decide/reason.ts'
import { trackReason } from '../decide/track-reason.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import { DecisionHistory } from './decision-history.ts'
import type { BoardDecision, BoardState, BoardTable, HeatBoard, HeatPost, PostAnswer } from './heat-board.ts'
import { isWorthPosting, makePost } from './make-post.ts'
import { measuringOf, parseTrackId, type TrackName, trackId } from './track-id.ts'

export interface SharedDeciderOptions extends DeciderOptions {
  readonly board: Pick<HeatBoard, 'bucketOf'>
  /** This hub's name on the board. */
  readonly boardId: string
  /** The track of a key by the rule that is in force here; undefined where that rule does not apply. */
  readonly findTrack: (name: TrackName) => HeatTrack | undefined
  /** A key is hot: its hosts and its last minute are of interest. */
  readonly onHot: (track: HeatTrack) => void
  /** Something is to be posted before the next tick. */
  readonly urge: () => void
}

/** A track that the board is told of. */
interface Watched {
  readonly id: string
  readonly bucket: number
  readonly rule: Rule
  /** Its heat grew since it was last posted. */
  isDirty: boolean
  isDue: boolean
  isUrged: boolean
  claimHeat: number | undefined
  isLost: boolean
}

/** A post on its way; without a track where only the board knows the key. */
export interface PendingPost {
  readonly track?: HeatTrack
  readonly post: HeatPost
}

/**
 * Keys posted at one time; beyond it new ones wait until others are cold again. As many places are kept for keys that have
 * their part of the threshold here, T/hubs: keys at half of it must not take the place of a hot one.
 */
const maxWatched = 20_000
/** What others have of a key counts for so long after they were last heard. */
const othersMs = 1500
const noPost: Omit<HeatPost, 'id' | 'drop'> = {
  windowMs: 0,
  sliceMs: 1,
  headAgeMs: 0,
  accesses: [],
  levels: [],
  minHoldMs: 0,
  strategies: [],
  services: [],
  settleMs: 0,
}

/**
 * Decides together with other hubs: collects what is to be posted to the board, and carries out what the board decided.
 *
 * Nothing becomes hot or cold here by itself, with one exception: while a bucket of the board is away, its hot keys stay
 * hot, and a key that crosses its threshold on this hub alone becomes hot here. When the board is back it is told of both.
 */
export class SharedDecider implements HeatDecider {
  readonly #options: SharedDeciderOptions
  readonly #history: DecisionHistory
  readonly #watched = new Map<HeatTrack, Watched>()
  readonly #active = new Map<string, HeatTrack>()
  /** Ids that no rule here is for any more, and why. */
  readonly #drops = new Map<string, string>()
  readonly #away = new Set<number>()
  #hubCount = 1
  #clockOffsetMs = 0

  constructor(options: SharedDeciderOptions) {
    this.#options = options
    this.#history = new DecisionHistory(options.record, options.totals)
  }

  active(): Iterable<HeatTrack> {
    return this.#active.values()
  }

  setRules(): void {
    // A track that is watched under another rule is watched anew when it is next touched.
  }

  setHubCount(hubCount: number): void {
    this.#hubCount = hubCount
  }

  /** What to add to a time of the board to have one of this hub. */
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
    let watched = this.#watched.get(track)
    if (watched?.rule !== rule) {
      if (!isActive && !isWorthPosting(track, rule, this.#hubCount, this.#options.totals, now)) return
      watched = this.#watch(track, rule)
      if (watched === undefined) return
    }
    watched.isDirty = true
    if (isActive) return
    const entered = rule.levels.findLastIndex((level) => isEntered(level, readLevel(track, level, now)))
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
    const watched = this.#watch(track, rule, true)
    if (watched === undefined) return false
    watched.claimHeat = heat
    if (this.#away.has(watched.bucket)) this.#enterAlone(track, rule, watched.id, index, now)
    else this.#options.urge()
    return true
  }

  /** Shows who cools, and keeps hot what the board cannot be asked about. */
  tick(now: number): void {
    const { totals, entryTtlMs, sink } = this.#options
    for (const [id, track] of this.#active) {
      const { rule, state } = track
      if (rule === undefined || state === undefined || state.phase === 'warming') continue
      const isWarm = rule.levels.some(
        (level, index) => index <= state.level && isHeld(level, readLevel(track, level, now, totals)),
      )
      let { entry } = state
      if (this.#away.has(this.#options.board.bucketOf(id)) && entry.until - now < entryTtlMs / 2) {
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
      this.#drops.set(id, text)
      this.#leave(id, track)
      return
    }
    track.rule = rule
    this.onHeat(track, now)
  }

  reasonOf(track: HeatTrack, now: number): string {
    return trackReason(track, this.#options.totals, now)
  }

  /** Timers that this hub claimed. */
  due(ids: readonly string[]): void {
    for (const id of ids) {
      const track = this.#options.findTrack(parseTrackId(id))
      const watched = track?.rule && this.#watch(track, track.rule)
      if (watched === undefined) this.#drops.set(id, `rule \`${parseTrackId(id).ruleId}\` no longer applies`)
      else watched.isDue = true
    }
  }

  /** What is to be told to the board now, by bucket. */
  takePosts(now: number): Map<number, PendingPost[]> {
    const posts = new Map<number, PendingPost[]>()
    const add = (bucket: number, pending: PendingPost) => {
      const list = posts.get(bucket)
      if (list === undefined) posts.set(bucket, [pending])
      else list.push(pending)
    }
    for (const [id, drop] of this.#drops) add(this.#options.board.bucketOf(id), { post: { ...noPost, id, drop } })
    this.#drops.clear()
    for (const [track, watched] of this.#watched) {
      const { isDirty, isDue, isLost, claimHeat, bucket } = watched
      if (isDirty || isDue || isLost || claimHeat !== undefined) {
        add(bucket, { track, post: this.#post(track, watched, now) })
        watched.isDirty = false
        watched.isDue = false
        watched.isLost = false
        watched.claimHeat = undefined
      } else if (!this.#active.has(watched.id) && !this.#isWorth(track, watched, now)) {
        this.#unwatch(track)
      }
    }
    return posts
  }

  /** Posts that did not arrive: their windows are posted again, and what hangs on time comes again by itself. */
  notPosted(posts: readonly PendingPost[]): void {
    for (const { track, post } of posts) {
      const watched = track && this.#watched.get(track)
      if (watched !== undefined) watched.isDirty = true
      else if (post.drop !== undefined) this.#drops.set(post.id, post.drop)
    }
  }

  /** What the board has of the posted keys in all. */
  posted(posts: readonly PendingPost[], { heats }: PostAnswer, now: number): void {
    for (const [index, { track }] of posts.entries()) {
      const heat = heats[index]
      if (track === undefined || heat === undefined) continue
      const writes = track.ownHeat('writes', now)
      const others = [
        heat.accesses - track.ownHeat('accesses', now),
        heat.writes - writes,
        heat.bytes - track.ownHeat('bytes', now),
      ].map((value) => Math.max(0, value)) as [number, number, number]
      track.setOthers(...others, now + othersMs)
      this.#warm(track, now)
    }
  }

  /** Carries a decision out; false where the key's rule is not in force here. */
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
    if (track === undefined) return false
    if (isOurs) this.#history.hot(decision, track, at)
    return true
  }

  /** Takes over the whole table of a bucket; keys that are hot here only are told to the board, or let go. */
  reconcile(bucket: number, { states }: BoardTable, isTrusted: boolean): void {
    for (const [id, state] of states) {
      if (this.#setHot(id, state) === undefined)
        this.#drops.set(id, `rule \`${parseTrackId(id).ruleId}\` no longer applies`)
    }
    for (const [id, track] of [...this.#active]) {
      if (states.has(id) || this.#options.board.bucketOf(id) !== bucket) continue
      if (isTrusted) {
        this.#leave(id, track)
      } else {
        const watched = this.#watch(track, track.rule!)
        if (watched !== undefined) watched.isLost = true
      }
    }
  }

  #post(track: HeatTrack, { id, rule, isDue, isLost, claimHeat }: Watched, now: number): HeatPost {
    const post = makePost(id, track, rule, this.#options, now)
    const { state } = track
    const isHot = state !== undefined && state.phase !== 'warming'
    return {
      ...post,
      ...(isDue && { isDue }),
      ...(claimHeat !== undefined && { claimHeat }),
      ...(isLost &&
        isHot && {
          adopt: {
            level: state.level + 1,
            since: Math.round(state.since - this.#clockOffsetMs),
            strategy: JSON.stringify(state.entry.strategy),
          },
        }),
    }
  }

  #watch(track: HeatTrack, rule: Rule, isClaimed = false): Watched | undefined {
    const known = this.#watched.get(track)
    if (known?.rule === rule) return known
    const id = trackId(track, rule)
    if (known === undefined && !this.#active.has(id) && !this.#hasRoom(track, rule, isClaimed)) return undefined
    const bucket = this.#options.board.bucketOf(id)
    const fresh = { id, bucket, rule, isDirty: true, isDue: false, isUrged: false, claimHeat: undefined, isLost: false }
    this.#watched.set(track, fresh)
    return fresh
  }

  #hasRoom(track: HeatTrack, rule: Rule, isClaimed: boolean): boolean {
    if (this.#watched.size < maxWatched) return true
    if (this.#watched.size >= 2 * maxWatched) return false
    const { totals, clock } = this.#options
    return isClaimed || isWorthPosting(track, rule, this.#hubCount / 2, totals, clock.now())
  }

  #unwatch(track: HeatTrack): void {
    this.#watched.delete(track)
    if (track.state?.phase === 'warming') track.state = undefined
  }

  #isWorth(track: HeatTrack, { rule }: Watched, now: number): boolean {
    return isWorthPosting(track, rule, this.#hubCount, this.#options.totals, now)
  }

  #warm(track: HeatTrack, now: number): void {
    const { rule, state } = track
    if (rule === undefined || (state !== undefined && state.phase !== 'warming')) return
    const isWarm = rule.levels.some((level) => isHeld(level, readLevel(track, level, now, this.#options.totals)))
    if (isWarm !== (state !== undefined)) track.state = isWarm ? { phase: 'warming', since: now } : undefined
  }

  #enterAlone(track: HeatTrack, rule: Rule, id: string, index: number, now: number): void {
    const { chooseStrategy, processCount, entryTtlMs } = this.#options
    const { redisClusterId, key, services } = track
    const level = rule.levels[index]!
    const { strategy } = chooseStrategy({ redisClusterId, key, rule, level, processCount: processCount(services) })
    const { heat } = readLevel(track, level, now)
    const at = now - this.#clockOffsetMs
    this.#setHot(id, {
      level: index + 1,
      since: at,
      levelSince: at,
      until: at + entryTtlMs,
      strategy: JSON.stringify(strategy),
      services: [],
      heat,
    })
    const reason = hotReason(rule, level, { heat, share: undefined })
    this.#history.add(track, rule.mode === 'on' ? 'hot' : 'shadow', now, `${reason}, by this hub alone`)
  }

  #setHot(id: string, state: BoardState): HeatTrack | undefined {
    const track = this.#active.get(id) ?? this.#options.findTrack(parseTrackId(id))
    const rule = track?.rule
    if (track === undefined || rule === undefined) return undefined
    const { redisClusterId, key } = track
    const index = Math.min(state.level, rule.levels.length) - 1
    const reason = hotReason(rule, rule.levels[index]!, { heat: state.heat, share: state.share })
    const strategy = JSON.parse(state.strategy) as Strategy
    const since = state.since + this.#clockOffsetMs
    const until = state.until + this.#clockOffsetMs
    const entry: TableEntry = { redisClusterId, key, strategy, ruleId: rule.id, reason, since, until }
    const before = track.state?.phase === 'warming' ? undefined : track.state
    const ratePerSecondBefore = before?.ratePerSecondBefore ?? (state.heat * 1000) / track.windowMs
    const levelSince = state.levelSince + this.#clockOffsetMs
    track.state = { phase: 'hot', since, level: index, levelSince, entry, ratePerSecondBefore }
    // Services that only this hub has seen to touch the key: the board learns of them with the next post.
    if ([...track.services].some((service) => !state.services.includes(service))) {
      const watched = this.#watch(track, rule)
      if (watched !== undefined) watched.isDirty = true
    }
    for (const service of state.services) if (!track.services.has(service)) track.addService(service)
    this.#active.set(id, track)
    if (rule.mode === 'on') this.#options.sink.set(track, entry)
    if (before === undefined) this.#options.onHot(track)
    return track
  }

  #leave(id: string, track: HeatTrack): void {
    track.state = undefined
    this.#active.delete(id)
    const watched = this.#watched.get(track)
    if (watched !== undefined) watched.isUrged = false
    this.#options.sink.remove(track)
  }
}
