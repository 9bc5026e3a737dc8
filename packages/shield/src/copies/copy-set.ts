import type { RedundantKeysStrategy } from '@firebreak/core'
import type { RespValue } from '@firebreak/core/resp'
import { CachedReply, ownBytes } from '../cache/cached-reply.ts'
import type { LoadedHandler as CopyReader } from '../cache/load.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import type { SharedByKeys } from '../cache/shared-by-keys.ts'
import type { KeySpace } from '../gate/key-space.ts'
import { endlessLease } from '../watcher/lease.ts'
import type { TrackingWatcher } from '../watcher/tracking-watcher.ts'
import { livesOf, longestLifeMs, vouchMs } from './copy-lives.ts'
import { copyReadReplies, encodeCopyRead, parseCopyRead } from './copy-read.ts'
import { encodeScript } from './copy-script.ts'
import { markerOf, ownershipOf, refresherOf, versionOf } from './own-names.ts'
import { decodeAnswer, type Picture, pictureOf } from './picture.ts'
import { byNode, type PlacedCopy, placeCopies, recentNodesOf } from './place-copies.ts'

/** A read that is not answered: it waits for a picture, or a copy was asked. */
interface PendingRead {
  /** When it was asked for. */
  readonly since: number
  readonly command: ReadCommand
  readonly onRead: CopyReader
}

/** The key that has copies. */
export interface CopiedKey {
  readonly name: string
  readonly bytes: Uint8Array
  readonly slot: number
  readonly space: KeySpace
  /** Reads that a copy answered. */
  copyReads: number
  /** Reads the key itself; false where that cannot be done now. */
  readOriginal(command: ReadCommand, onRead: CopyReader): boolean
}

type CopySetMeans = Pick<SharedByKeys, 'processId' | 'runtime' | 'watchers' | 'trouble' | 'guards'>

const renewMs = 500
const electionMs = 3000
const counterMs = 3_600_000
/** Who asks in vain is no refresher for the moment, and asks again soon. */
const electionRetryMs = 100
/** The longest time for which nobody looks whether a copy's slot has moved. */
const restMs = 500
/** Random choices before the copies are gone through one by one. */
const pickAttempts = 16

/**
 * The copies of one hot key (strategy RedundantKeys), as one process sees them.
 *
 * *Reading.* A read goes to a random copy on a random node that can be reached, together with the copy's marker. The marker says
 * whose copy it is and of which version. Without one, or with an older version than this process has seen or written, a
 * new picture of the key is put to the copies first; so a client never goes back in time and always sees its own writes.
 * The key itself is read only where no copy can be.
 *
 * *Refreshing.* One process is elected to follow the key, of those whose tracking works: it takes pictures of it on its tracking connection, so the
 * server tells it of the next change, whoever makes it, and writes each picture to all copies. Pictures are numbered at
 * the instant they are taken, and a copy only ever gets a higher number: two refreshers after a split cannot undo each
 * other. Markers live `vouchMs` and are renewed while the refresher's watcher is known alive; when it dies, readers are
 * back at the key within that time, and another process is elected. A picture that nobody follows is vouched for no longer
 * than a cached value is that has no guard (`fallbackTtlMs`).
 */
export class CopySet {
  readonly #key: CopiedKey
  readonly #shared: CopySetMeans
  readonly #strategy: RedundantKeysStrategy
  #copies: readonly PlacedCopy[] = []
  #byNode: readonly (readonly PlacedCopy[])[] = []
  #placedFor = ''
  /** Only pictures of at least this version are read; infinite until there is one. */
  #seenVersion = Number.POSITIVE_INFINITY
  /** Counts what makes the pictures so far too old. */
  #epoch = 0
  #isCatchingUp = false
  /** Reads that wait for the next picture, and those that a copy was asked for. */
  readonly #waiting: PendingRead[] = []
  readonly #asked = new Set<PendingRead>()
  /** The refresher's last picture; undefined where the key has changed since. */
  #picture: Picture | undefined
  #isRefresher = false
  #isRefreshing = false
  #mustRefresh = false
  #electedAt = Number.NEGATIVE_INFINITY
  #renewedAt = Number.NEGATIVE_INFINITY
  /** Copies whose names are no longer used, and until when others may still write them. */
  #leaving: readonly PlacedCopy[] = []
  #leavingUntil = 0
  readonly #foreign = new Set<string>()
  #isClosed = false

  constructor(key: CopiedKey, shared: CopySetMeans, strategy: RedundantKeysStrategy) {
    this.#key = key
    this.#shared = shared
    this.#strategy = strategy
    this.#place()
  }

  /** Names and nodes of the copies in use. */
  get copies(): readonly PlacedCopy[] {
    return this.#copies
  }

  get isRefresher(): boolean {
    return this.#isRefresher
  }

  /** The slots whose nodes' watchers must stay awake for us. */
  get slots(): readonly number[] {
    return [this.#key.slot, ...this.#copies.map(({ slot }) => slot)]
  }

  /** Reads a copy, or the key where no copy will do; false where neither can be read here. */
  read(command: ReadCommand, onRead: CopyReader): boolean {
    const isRead = this.#read({ command, onRead, since: this.#shared.runtime.clock.now() }, false)
    // As `#giveBack`.
    if (!isRead) this.written()
    return isRead
  }

  #read(read: PendingRead, isSecondTry: boolean): boolean {
    if (this.#seenVersion === Number.POSITIVE_INFINITY) return this.#wait(read)
    const copy = this.#pick()
    const watcher = copy === undefined ? undefined : this.#watcherAt(copy.slot)
    if (copy === undefined || watcher === undefined) return this.#readOriginal(read)
    const bytes = encodeCopyRead(copy.bytes, read.command.encodeFor(copy.bytes))
    this.#asked.add(read)
    watcher.transact(this.#key.space.database, bytes, copyReadReplies, (reply) => {
      // An own write went out meanwhile, and the reader to Redis before it.
      if (!this.#asked.delete(read)) return
      const reading = reply === undefined ? undefined : parseCopyRead(reply, this.#key.bytes)
      if (reading?.version !== undefined && reading.version >= this.#seenVersion) {
        this.#seenVersion = reading.version
        this.#key.copyReads++
        // Served once, to this reader.
        read.onRead(new CachedReply(ownBytes(reading.reply), 0, endlessLease))
        return
      }
      // A copy that ended or is behind is rewritten, and read once more; a command that fails on it goes to the key.
      const mayTryAgain = reading !== undefined && !isSecondTry
      if (mayTryAgain) this.written()
      const isSent = mayTryAgain ? this.#wait(read) : this.#readOriginal(read)
      if (!isSent) this.#giveBack(read)
    })
    return true
  }

  /** Reads the key itself; false where the reader has waited too long for another such way. */
  #readOriginal({ command, onRead, since }: PendingRead): boolean {
    const { runtime, guards } = this.#shared
    if (runtime.clock.now() - since > guards.leaseMs / 3) return false
    return this.#key.readOriginal(command, onRead)
  }

  /**
   * Waits for the picture that is being taken. Reading the key meanwhile would show something newer than that picture, and
   * the next read of a copy would go back in time: with many readers there would never be a picture new enough.
   */
  #wait(read: PendingRead): boolean {
    if (!this.#watcherAt(this.#key.slot)?.canRead) return false
    this.#waiting.push(read)
    if (!this.#isCatchingUp) this.#catchUp()
    return true
  }

  /** Nothing can be read here. The application asks Redis itself, and must not be shown something older afterwards. */
  #giveBack({ onRead }: PendingRead): void {
    this.written()
    onRead(undefined)
  }

  /** Sends every reader to Redis: an own write is about to go out, and a copy may show it to those who asked before. */
  abandon(): void {
    const reads = [...this.#asked, ...this.#waiting.splice(0)]
    this.#asked.clear()
    for (const { onRead } of reads) onRead(undefined)
  }

  /** The server says that the key changed. */
  changed(): void {
    this.#picture = undefined
    if (this.#isRefresher) this.#refresh()
  }

  /** Any key may have changed, and nobody was told. */
  missed(): void {
    this.changed()
    this.written()
  }

  /** The application wrote the key or may have read it: only pictures that are taken from now on will do. */
  written(): void {
    this.#seenVersion = Number.POSITIVE_INFINITY
    this.#epoch++
    if (!this.#isCatchingUp) this.#catchUp()
  }

  #catchUp(): void {
    this.#isCatchingUp = true
    const epoch = this.#epoch
    this.#ask(this.#key.slot, encodeScript('take', this.#originalKeys(), [counterMs]), (value, askedAt) => {
      this.#isCatchingUp = false
      const picture = pictureOf(value, askedAt)
      if (this.#isClosed || picture === undefined) {
        this.#serveWaiting((read) => this.#readOriginal(read))
        return
      }
      this.#putAll(picture)
      if (epoch !== this.#epoch) {
        this.#catchUp()
        return
      }
      this.#seenVersion = picture.version
      // Behind the puts on the same connections: they find the new picture.
      this.#serveWaiting((read) => this.#read(read, true))
    })
  }

  #serveWaiting(serve: (read: PendingRead) => boolean): void {
    for (const read of this.#waiting.splice(0)) if (!serve(read)) this.#giveBack(read)
  }

  /** Looks after the election, the names and the markers; gives the milliseconds until that is to be done again. */
  tick(): number {
    if (this.#isClosed) return restMs
    const now = this.#shared.runtime.clock.now()
    this.#place()
    this.#giveBackLate(now)
    if (this.#seenVersion === Number.POSITIVE_INFINITY && !this.#isCatchingUp) this.#catchUp()
    if (!this.#canFollow) this.#resign()
    else if (now - this.#electedAt >= electionMs / 3) this.#elect(now)
    if (this.#isRefresher && now - this.#renewedAt >= renewMs) this.#renew(now)
    if (this.#seenVersion === Number.POSITIVE_INFINITY || !this.#canFollow) return 0
    // What was asked just now is answered by then.
    if (this.#electedAt === now) return electionRetryMs
    const electionMsLeft = this.#electedAt + electionMs / 3 - now
    const renewalMsLeft = this.#isRefresher ? this.#renewedAt + renewMs - now : restMs
    return Math.min(electionMsLeft, renewalMsLeft, restMs)
  }

  /** Nobody waits longer than a lease for us, whatever they wait for. */
  #giveBackLate(now: number): void {
    const isLate = ({ since }: PendingRead): boolean => now - since > this.#shared.guards.leaseMs
    const late = [...this.#asked, ...this.#waiting].filter(isLate)
    for (const read of late) {
      this.#asked.delete(read)
      const place = this.#waiting.indexOf(read)
      if (place >= 0) this.#waiting.splice(place, 1)
    }
    for (const read of late) this.#giveBack(read)
  }

  /** The key cooled: the refresher takes the copies away; they would also end by themselves. */
  close(): void {
    this.#isClosed = true
    for (const copy of this.#copies) this.#leave(copy)
    if (!this.#isRefresher) return
    for (const copy of this.#copies) this.#remove(copy)
    this.#isRefresher = false
  }

  #place(): void {
    const nodeOf = (slot: number) => this.#key.space.upstream.nodeOf(slot)
    const nodes = recentNodesOf(this.#key.space.upstream, this.#shared.runtime.clock.now())
    const placedFor = nodes.join() + nodeOf(this.#key.slot)
    if (placedFor === this.#placedFor && this.#copies.every(({ slot, node }) => nodeOf(slot) === node)) return
    this.#placedFor = placedFor
    const before = this.#copies
    this.#copies = placeCopies(this.#strategy.copies, nodeOf, nodes)
    this.#byNode = byNode(this.#copies)
    if (nodes.length === 1) {
      this.#shared.trouble.note(
        'copies-one-node',
        `copies of ${this.#key.name} help nothing: there is one node only, and it serves them all`,
      )
    }
    for (const copy of before) if (!this.#copies.some(({ name }) => name === copy.name)) this.#leave(copy)
    if (!this.#isRefresher) return
    const names = new Set(this.#copies.map(({ name }) => name))
    this.#leaving = before.filter(({ name }) => !names.has(name))
    this.#leavingUntil = this.#shared.runtime.clock.now() + vouchMs
    for (const copy of this.#leaving) this.#remove(copy)
    this.#refresh()
  }

  /**
   * A copy that can be read. First a node, then one of its copies: so the nodes share the reads evenly, however many
   * copies each of them has, and what a dead one does not take is spread over all others.
   */
  #pick(): PlacedCopy | undefined {
    for (let attempt = 0; attempt < pickAttempts && this.#byNode.length > 0; attempt++) {
      const copy = this.#oneOf(this.#oneOf(this.#byNode))
      if (this.#isReadable(copy)) return copy
    }
    return this.#copies.find((copy) => this.#isReadable(copy))
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#shared.runtime.random() * items.length)]!
  }

  #isReadable({ name, slot }: PlacedCopy): boolean {
    return !this.#foreign.has(name) && this.#watcherAt(slot)?.canRead === true
  }

  /** True while the server tells us of the key's changes. */
  get #canFollow(): boolean {
    return this.#watcherAt(this.#key.slot)?.state === 'live'
  }

  /** Where we can ask nobody either, the election ends by itself. */
  #resign(): void {
    if (!this.#isRefresher) return
    this.#isRefresher = false
    this.#electedAt = Number.NEGATIVE_INFINITY
    const key = refresherOf(this.#key.bytes)
    this.#ask(this.#key.slot, encodeScript('resign', [key], [this.#shared.processId]), () => {})
  }

  #elect(now: number): void {
    this.#electedAt = now
    const key = refresherOf(this.#key.bytes)
    this.#ask(this.#key.slot, encodeScript('elect', [key], [this.#shared.processId, electionMs]), (value) => {
      if (this.#isClosed) return
      if (typeof value !== 'number') this.#electedAt = now - electionMs / 3 + electionRetryMs
      const wasRefresher = this.#isRefresher
      this.#isRefresher = value === 1
      if (this.#isRefresher && !wasRefresher) this.#refresh()
    })
  }

  /** Takes a picture and writes it to all copies; one at a time, and once more for changes meanwhile. */
  #refresh(): void {
    if (this.#isRefreshing) {
      this.#mustRefresh = true
      return
    }
    this.#isRefreshing = true
    this.#ask(this.#key.slot, encodeScript('take', this.#originalKeys(), [counterMs]), (value, askedAt) => {
      this.#isRefreshing = false
      const picture = pictureOf(value, askedAt)
      if (picture !== undefined && !this.#isClosed) {
        this.#picture = picture
        this.#renewedAt = this.#shared.runtime.clock.now()
        this.#putAll(picture)
      }
      if (!this.#mustRefresh) return
      this.#mustRefresh = false
      this.#refresh()
    })
  }

  #putAll(picture: Picture): void {
    for (const copy of this.#copies) this.#put(copy, picture)
  }

  #put(copy: PlacedCopy, picture: Picture): void {
    const { ownCopies } = this.#key.space
    const args = [picture.version, this.#key.bytes, ...this.#livesFor(picture), picture.dump ?? '']
    this.#ask(copy.slot, encodeScript('put', keysOf(copy), args), (value) => {
      const said = value instanceof Uint8Array ? Buffer.from(value).toString() : value
      if (said === 'put' || said === 'newer') {
        this.#foreign.delete(copy.name)
        ownCopies.add(copy.bytes)
        if (this.#isClosed) this.#leave(copy)
      }
      if (said === 'foreign') {
        ownCopies.delete(copy.bytes)
        this.#foreign.add(copy.name)
        this.#shared.trouble.note(
          'copies-foreign',
          `${copy.name} is somebody’s own key: it is left alone and not used as a copy of ${this.#key.name}`,
        )
      }
    })
  }

  /** Vouches for the copies once more, but only while we are sure to have heard of every change. */
  #renew(now: number): void {
    this.#renewedAt = now
    for (const copy of this.#leaving) this.#remove(copy)
    if (now >= this.#leavingUntil) this.#leaving = []
    const picture = this.#picture
    if (!this.#canFollow || !this.#watcherAt(this.#key.slot)!.canRead) return
    if (picture === undefined || picture.pttlMs >= 0) {
      // It has changed since, or it expires and its time is running.
      this.#refresh()
      return
    }
    for (const copy of this.#copies) {
      const args = [picture.version, ...this.#livesFor(picture), this.#key.bytes]
      this.#ask(copy.slot, encodeScript('renew', keysOf(copy), args), (value) => {
        if (value === 0 && this.#isRefresher && this.#picture === picture) this.#put(copy, picture)
      })
    }
  }

  #remove(copy: PlacedCopy): void {
    this.#ask(copy.slot, encodeScript('drop', keysOf(copy), [this.#key.bytes]), (value) => {
      if (typeof value === 'number') this.#key.space.ownCopies.delete(copy.bytes)
    })
  }

  /** It is no longer ours to write, and may be there for as long as it was last made to live. */
  #leave({ bytes }: PlacedCopy): void {
    const now = this.#shared.runtime.clock.now()
    const { ownCopies } = this.#key.space
    ownCopies.leave(bytes, now + longestLifeMs(this.#strategy.ttlJitterMs))
    ownCopies.sweep(now)
  }

  #originalKeys(): Uint8Array[] {
    const { bytes } = this.#key
    return [bytes, versionOf(bytes), refresherOf(bytes)]
  }

  #livesFor(picture: Picture): number[] {
    const { guards, runtime } = this.#shared
    return livesOf(picture, picture.isFollowed || this.#isRefresher, {
      fallbackTtlMs: guards.fallbackTtlMs,
      ttlJitterMs: this.#strategy.ttlJitterMs,
      now: runtime.clock.now(),
      chance: runtime.random(),
    })
  }

  #watcherAt(slot: number): TrackingWatcher | undefined {
    return this.#shared.watchers.at(this.#key.space, slot)
  }

  #ask(slot: number, bytes: Uint8Array, onValue: (value: RespValue | undefined, askedAt: number) => void): void {
    const watcher = this.#watcherAt(slot)
    if (watcher === undefined || !watcher.canRead) {
      onValue(undefined, Number.NEGATIVE_INFINITY)
      return
    }
    watcher.transact(this.#key.space.database, bytes, 1, (reply, sentAt) =>
      onValue(reply === undefined ? undefined : decodeAnswer(reply), sentAt),
    )
  }
}

function keysOf({ bytes }: PlacedCopy): Uint8Array[] {
  return [bytes, markerOf(bytes), ownershipOf(bytes)]
}
