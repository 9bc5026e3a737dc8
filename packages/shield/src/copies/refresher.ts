import type { CopiedKey, CopyMeans } from './copied-key.ts'
import { vouchMs } from './copy-lives.ts'
import { encodeScript } from './copy-script.ts'
import type { CopyServers } from './copy-servers.ts'
import type { CopyWriter } from './copy-writer.ts'
import { refresherOf } from './own-names.ts'
import type { Picture } from './picture.ts'
import type { PlacedCopy } from './place-copies.ts'
import type { PlacedCopies } from './placed-copies.ts'

const renewMs = 500
const electionMs = 3000
/** How soon a process that was not elected asks again. */
const electionRetryMs = 100
/** How soon a server that could not be asked to remove copies is asked again; each pause is twice the one before. */
const removalRetryMs = 100
/** With these tries it is asked for as long as copies live that nobody renews. */
const removalTries = 7
/** The longest time without checking whether a copy's slot has moved. */
export const restMs = 500

/**
 * Keeps a key's copies up to date, if this process is elected to.
 *
 * One process is elected among those whose tracking works: it takes pictures of the key on its tracking connection, so
 * the server notifies it of the next change, whoever makes it, and writes each picture to all copies. Pictures are
 * numbered at the instant they are taken, and a copy only ever gets a higher number, so two refreshers after a split
 * cannot undo each other's work. Markers live for `vouchMs` and are renewed while the refresher's watcher is known to
 * be alive; when it dies, readers are back at the key within that time, and another process is elected.
 */
export class Refresher {
  readonly #key: CopiedKey
  readonly #means: CopyMeans
  readonly #servers: CopyServers
  readonly #placed: PlacedCopies
  readonly #writer: CopyWriter
  /** The last picture; undefined if the key has changed since. */
  #picture: Picture | undefined
  #isElected = false
  #isRefreshing = false
  #mustRefresh = false
  #electedAt = Number.NEGATIVE_INFINITY
  #renewedAt = Number.NEGATIVE_INFINITY
  /** Copies whose names are no longer used, and until when others may still write them. */
  #leaving: readonly PlacedCopy[] = []
  #leavingUntil = 0
  #isClosed = false

  constructor(key: CopiedKey, means: CopyMeans, servers: CopyServers, placed: PlacedCopies, writer: CopyWriter) {
    this.#key = key
    this.#means = means
    this.#servers = servers
    this.#placed = placed
    this.#writer = writer
  }

  /** True if this process was elected. */
  get isElected(): boolean {
    return this.#isElected
  }

  /** The server reports that the key changed. */
  changed(): void {
    this.#picture = undefined
    if (this.#isElected) this.#refresh()
  }

  /** The copies have moved, and these are no longer used. */
  moved(left: readonly PlacedCopy[]): void {
    if (!this.#isElected) return
    this.#leaving = left
    this.#leavingUntil = this.#means.runtime.clock.now() + vouchMs
    for (const copy of left) this.#writer.remove(copy)
    this.#refresh()
  }

  /** Maintains the election and the markers; returns the milliseconds until the next call. */
  tick(now: number): number {
    const { canFollow } = this.#servers
    if (canFollow) {
      if (now - this.#electedAt >= electionMs / 3) this.#elect(now)
    } else if (this.#isElected) this.#resign()
    if (this.#isElected && now - this.#renewedAt >= renewMs) this.#renew(now)
    if (!canFollow) return 0
    // The question just asked will be answered by then.
    if (this.#electedAt === now) return electionRetryMs
    const electionMsLeft = this.#electedAt + electionMs / 3 - now
    const renewalMsLeft = this.#isElected ? this.#renewedAt + renewMs - now : restMs
    return Math.min(electionMsLeft, renewalMsLeft, restMs)
  }

  /**
   * Removes the copies if this process is the refresher, or if nobody is: for whoever cools last, after the refresher,
   * may have written them again.
   */
  close(): void {
    this.#isClosed = true
    const left = new Set([...this.#placed.all, ...this.#leaving])
    if (this.#isElected) for (const copy of left) this.#remove(copy, left)
    this.#leave(left, 1)
  }

  #remove(copy: PlacedCopy, left: Set<PlacedCopy>): void {
    this.#writer.remove(copy, (isDone) => isDone && left.delete(copy))
  }

  /** Resigns, and has removed what is left unless another process follows the key: then that one will. */
  #leave(left: Set<PlacedCopy>, attempt: number): void {
    this.#resign((isFollowed) => {
      if (isFollowed === false) for (const copy of left) this.#remove(copy, left)
      if (left.size === 0) return
      if (isFollowed === true) this.#lookAgain(left, attempt)
      else this.#leaveLater(left, attempt, removalRetryMs * 2 ** (attempt - 1))
    })
  }

  /** A server may be out of reach for a moment, and in particular when this process was too busy to hear of it. */
  #leaveLater(left: Set<PlacedCopy>, attempt: number, pauseMs: number): void {
    const { space } = this.#key
    if (attempt === removalTries || space.isClosed) return
    this.#means.runtime.timers.setTimeout(() => {
      if (space.isClosed) return
      // The key has copies of these names again.
      for (const copy of left) if (this.#key.hasCopy(copy.name)) left.delete(copy)
      if (left.size > 0) this.#leave(left, attempt + 1)
    }, pauseMs)
  }

  /** The process that follows the key may be dead. Copies that are not renewed then expire; others have to be removed. */
  #lookAgain(left: Set<PlacedCopy>, attempt: number): void {
    if (this.#writer.hasTtlOfKey) this.#leaveLater(left, Math.max(attempt, removalTries - 1), electionMs)
  }

  /** `onAnswer` hears whether another process follows the key; undefined if the server could not be asked. */
  #resign(onAnswer: (isFollowed: boolean | undefined) => void = () => {}): void {
    this.#isElected = false
    this.#electedAt = Number.NEGATIVE_INFINITY
    const command = encodeScript('resign', [refresherOf(this.#key.bytes)], [this.#means.processId])
    this.#servers.ask(this.#key.slot, command, (value) => onAnswer(typeof value === 'number' ? value !== 0 : undefined))
  }

  #elect(now: number): void {
    this.#electedAt = now
    const command = encodeScript('elect', [refresherOf(this.#key.bytes)], [this.#means.processId, electionMs])
    this.#servers.ask(this.#key.slot, command, (value) => {
      if (this.#isClosed) return
      if (typeof value !== 'number') this.#electedAt = now - electionMs / 3 + electionRetryMs
      const wasElected = this.#isElected
      this.#isElected = value === 1
      if (this.#isElected && !wasElected) this.#refresh()
    })
  }

  /** Takes a picture and writes it to all copies; one at a time, and once more for changes in the meantime. */
  #refresh(): void {
    if (this.#isRefreshing) {
      this.#mustRefresh = true
      return
    }
    this.#isRefreshing = true
    this.#servers.take((picture) => {
      this.#isRefreshing = false
      if (picture !== undefined && !this.#isClosed) {
        this.#picture = picture
        this.#renewedAt = this.#means.runtime.clock.now()
        this.#writer.putAll(picture, this.#isElected)
      }
      if (!this.#mustRefresh) return
      this.#mustRefresh = false
      this.#refresh()
    })
  }

  /** Renews the copies, but only while we are certain to have heard of every change. */
  #renew(now: number): void {
    this.#renewedAt = now
    for (const copy of this.#leaving) this.#writer.remove(copy)
    if (now >= this.#leavingUntil) this.#leaving = []
    const picture = this.#picture
    if (!this.#servers.canFollow || !this.#servers.canRead(this.#key.slot)) return
    if (picture === undefined || picture.pttlMs >= 0) {
      // It has changed since, or it has a TTL and its time is running.
      this.#refresh()
      return
    }
    for (const copy of this.#placed.all) {
      this.#writer.renew(copy, picture, this.#isElected, () => {
        if (this.#isElected && this.#picture === picture) this.#writer.put(copy, picture, true)
      })
    }
  }
}
