import type { Rule } from '@firebreak/core/rules'
import type { AccessTotals } from '../decide/access-totals.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { HeatPost } from './heat-board.ts'
import { isWorthPosting, makePost, type PostOptions } from './make-post.ts'
import { trackId } from './track-id.ts'

/** What to post about a track besides its window. */
export type PostExtras = Pick<HeatPost, 'isDue' | 'claimHeat' | 'adopt' | 'warm' | 'rechoose'>

/** A track that is posted to the board. */
export interface Watched {
  readonly id: string
  readonly bucket: number
  readonly rule: Rule
  /** Its heat has grown since it was last posted. */
  isDirty: boolean
  isUrged: boolean
  extras: PostExtras
}

/** A post in flight; without a track if only the board knows the key. */
export interface PendingPost {
  readonly track?: HeatTrack
  readonly post: HeatPost
}

export interface PostQueueOptions extends PostOptions {
  readonly totals: AccessTotals
  readonly bucketOf: (id: string) => number
}

/**
 * Keys posted at a time; beyond that new ones wait until others are cold again. As many places are reserved for keys
 * with their full share of the threshold here, T/hubs: keys at half of it must not displace a hot one.
 */
const maxWatched = 20_000
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

/** What this hub posts to the board: the windows of keys that matter, and keys to which no rule applies any more. */
export class PostQueue {
  readonly #options: PostQueueOptions
  readonly #watched = new Map<HeatTrack, Watched>()
  /** Ids to which no rule here applies any more, and why. */
  readonly #drops = new Map<string, string>()
  #hubCount = 1

  constructor(options: PostQueueOptions) {
    this.#options = options
  }

  setHubCount(hubCount: number): void {
    this.#hubCount = hubCount
  }

  get(track: HeatTrack): Watched | undefined {
    return this.#watched.get(track)
  }

  /** True if this hub counts so much of the key that the others must know. */
  isWorth(track: HeatTrack, rule: Rule, now: number): boolean {
    return isWorthPosting(track, rule, this.#hubCount, this.#options, now)
  }

  /** Posts the track from now on; undefined if there is no room. A `must` takes precedence. */
  watch(track: HeatTrack, rule: Rule, now: number, must: 'hot' | 'asked' | 'no' = 'no'): Watched | undefined {
    const known = this.#watched.get(track)
    if (known?.rule === rule) return known
    if (known === undefined && must !== 'hot' && !this.#hasRoom(track, rule, must === 'asked', now)) return undefined
    const id = trackId(track, rule)
    // The same key under the same rule, reloaded: what was still to be posted stays.
    const extras = known?.id === id ? known.extras : {}
    const fresh = { id, bucket: this.#options.bucketOf(id), rule, isDirty: true, isUrged: false, extras }
    this.#watched.set(track, fresh)
    return fresh
  }

  drop(id: string, why: string): void {
    this.#drops.set(id, why)
  }

  /** What to post to the board now, by bucket; a key that is not hot and hardly touched is no longer posted. */
  take(isHot: (id: string) => boolean, now: number): Map<number, PendingPost[]> {
    const posts = new Map<number, PendingPost[]>()
    const add = (bucket: number, pending: PendingPost) => {
      const list = posts.get(bucket)
      if (list === undefined) posts.set(bucket, [pending])
      else list.push(pending)
    }
    for (const [id, drop] of this.#drops) add(this.#options.bucketOf(id), { post: { ...noPost, id, drop } })
    this.#drops.clear()
    for (const [track, watched] of this.#watched) {
      const { id, rule, bucket, isDirty, extras } = watched
      if (isDirty || Object.keys(extras).length > 0) {
        add(bucket, { track, post: { ...makePost(id, track, rule, this.#options, now), ...extras } })
        watched.isDirty = false
        watched.extras = {}
      } else if (!isHot(id) && !this.isWorth(track, rule, now)) {
        this.#watched.delete(track)
        if (track.state?.phase === 'warming') track.state = undefined
      }
    }
    return posts
  }

  /** Posts that did not arrive: what would not recur by itself is posted again. */
  putBack(posts: readonly PendingPost[]): void {
    for (const { track, post } of posts) {
      const watched = track && this.#watched.get(track)
      if (watched !== undefined) {
        watched.isDirty = true
        if (post.warm !== undefined) watched.extras = { warm: post.warm, ...watched.extras }
      } else if (post.drop !== undefined) {
        this.#drops.set(post.id, post.drop)
      }
    }
  }

  #hasRoom(track: HeatTrack, rule: Rule, isAsked: boolean, now: number): boolean {
    if (this.#watched.size < maxWatched) return true
    if (this.#watched.size >= 2 * maxWatched) return false
    return isAsked || isWorthPosting(track, rule, this.#hubCount / 2, this.#options, now)
  }
}
