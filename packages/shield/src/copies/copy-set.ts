import type { RedundantKeysStrategy, TimerHandle } from '@firebreak/core'
import { CachedReply, ownBytes } from '../cache/cached-reply.ts'
import type { LoadedHandler as CopyReader } from '../cache/load.ts'
import type { ReadCommand } from '../cache/read-command.ts'
import { endlessLease } from '../watcher/lease.ts'
import type { CopiedKey, CopyMeans } from './copied-key.ts'
import { copyReadReplies, encodeCopyRead, parseCopyRead } from './copy-read.ts'
import { CopyServers } from './copy-servers.ts'
import { CopyWriter } from './copy-writer.ts'
import type { Picture } from './picture.ts'
import type { PlacedCopy } from './place-copies.ts'
import { PlacedCopies } from './placed-copies.ts'
import { Refresher, restMs } from './refresher.ts'

/** An unanswered read: it waits for a picture, or a copy was asked. */
interface PendingRead {
  /** When it was asked for. */
  readonly since: number
  readonly command: ReadCommand
  readonly onRead: CopyReader
}

/**
 * The copies of one hot key (strategy RedundantKeys), as one process sees them.
 *
 * *Reading.* A read goes to a random copy on a random reachable node, together with the copy's marker. The marker says
 * whose copy it is and which version. Without one, or with an older version than this process has seen or written, a
 * new picture of the key is first written to the copies; so a client never goes back in time and always sees its own
 * writes. The key itself is read only if no copy can be.
 *
 * *Refreshing.* See `Refresher`. A picture that nobody follows stays valid no longer than a cached value without a
 * guard does (`fallbackTtlMs`).
 */
export class CopySet {
  readonly #key: CopiedKey
  readonly #means: CopyMeans
  readonly #servers: CopyServers
  readonly #placed: PlacedCopies
  readonly #writer: CopyWriter
  readonly #refresher: Refresher
  /** Only pictures of at least this version are read; infinite until there is one. */
  #seenVersion = Number.POSITIVE_INFINITY
  /** Counts events that make all pictures so far too old. */
  #epoch = 0
  #isCatchingUp = false
  /** Reads that wait for the next picture, and those for which a copy or the key was asked. */
  readonly #waiting: PendingRead[] = []
  readonly #asked = new Set<PendingRead>()
  /** Set while a read is unanswered: nobody waits longer than a lease for us. */
  #deadline: TimerHandle | undefined
  #isClosed = false

  constructor(key: CopiedKey, means: CopyMeans, strategy: RedundantKeysStrategy) {
    this.#key = key
    this.#means = means
    this.#servers = new CopyServers(key, means.watchers)
    this.#placed = new PlacedCopies(key, means, this.#servers, strategy)
    this.#writer = new CopyWriter(key, means, this.#servers, this.#placed, strategy)
    this.#refresher = new Refresher(key, means, this.#servers, this.#placed, this.#writer)
    this.#place()
  }

  /** Names and nodes of the copies in use. */
  get copies(): readonly PlacedCopy[] {
    return this.#placed.all
  }

  /** The names that the server has accepted as copies of ours. */
  get writtenNames(): string[] {
    const { ownCopies } = this.#key.space
    return this.copies.filter(({ bytes }) => ownCopies.knows(bytes)).map(({ name }) => name)
  }

  /** The names last reported, and when. */
  told: { readonly names: string; readonly at: number } | undefined

  get isRefresher(): boolean {
    return this.#refresher.isElected
  }

  /** The slots whose nodes' watchers must stay awake for this key. */
  get slots(): readonly number[] {
    return [this.#key.slot, ...this.copies.map(({ slot }) => slot)]
  }

  /** Reads a copy, or the key if no copy will do; false if neither can be read here. */
  read(command: ReadCommand, onRead: CopyReader): boolean {
    const isRead = this.#read({ command, onRead, since: this.#means.runtime.clock.now() }, false)
    // As `#giveBack`.
    if (!isRead) this.written()
    return isRead
  }

  #read(read: PendingRead, isSecondTry: boolean): boolean {
    if (this.#seenVersion === Number.POSITIVE_INFINITY) return this.#wait(read)
    const copy = this.#placed.pick()
    const watcher = copy === undefined ? undefined : this.#servers.watcherAt(copy.slot)
    if (copy === undefined || watcher === undefined) return this.#readOriginal(read)
    const bytes = encodeCopyRead(copy.bytes, read.command.encodeFor(copy.bytes))
    this.#asked.add(read)
    this.#setDeadline(read)
    watcher.transact(this.#key.space.database, bytes, copyReadReplies, (reply) => {
      // An own write was sent in the meantime, and the reader was moved to Redis before it.
      if (!this.#asked.delete(read)) return
      this.#means.trouble.attempt(
        () => this.#took(read, reply, isSecondTry),
        () => this.#giveBack(read),
      )
    })
    return true
  }

  #took(read: PendingRead, reply: Uint8Array | undefined, isSecondTry: boolean): void {
    const reading = reply === undefined ? undefined : parseCopyRead(reply, this.#key.bytes)
    if (reading?.version !== undefined && reading.version >= this.#seenVersion) {
      this.#seenVersion = reading.version
      this.#key.copyReads++
      // Served once, to this reader.
      read.onRead(new CachedReply(ownBytes(reading.reply), 0, endlessLease))
      return
    }
    // A copy that expired or is behind is rewritten and read once more; if a command fails on it, the key is read.
    const mayTryAgain = reading !== undefined && !isSecondTry
    if (mayTryAgain) this.written()
    const isSent = mayTryAgain ? this.#wait(read) : this.#readOriginal(read)
    if (!isSent) this.#giveBack(read)
  }

  /** Reads the key itself; false if the reader has waited too long for another attempt. */
  #readOriginal(read: PendingRead): boolean {
    const { runtime, guards } = this.#means
    if (runtime.clock.now() - read.since > guards.leaseMs / 3) return false
    this.#asked.add(read)
    this.#setDeadline(read)
    const isRead = this.#key.readOriginal(read.command, (reply) => {
      if (!this.#asked.delete(read)) return
      if (reply === undefined) this.#giveBack(read)
      else read.onRead(reply)
    })
    if (!isRead) this.#asked.delete(read)
    return isRead
  }

  /**
   * Waits for the picture being taken. Reading the key meanwhile would show something newer than that picture, and the
   * next read of a copy would go back in time: with many readers no picture would ever be new enough.
   */
  #wait(read: PendingRead): boolean {
    if (!this.#servers.canRead(this.#key.slot)) return false
    this.#waiting.push(read)
    this.#setDeadline(read)
    if (!this.#isCatchingUp) this.#catchUp()
    return true
  }

  /** Neither can be read here. The application asks Redis itself and must not be shown anything older afterwards. */
  #giveBack({ onRead }: PendingRead): void {
    this.written()
    onRead(undefined)
  }

  /**
   * Sends every reader to Redis: an own write is about to be sent, and a copy might show it to those who asked earlier.
   */
  abandon(): void {
    const reads = [...this.#asked, ...this.#waiting.splice(0)]
    this.#asked.clear()
    for (const { onRead } of reads) onRead(undefined)
  }

  /** The server reports that the key changed. */
  changed(): void {
    this.#refresher.changed()
  }

  /** Any key may have changed without us being told. */
  missed(): void {
    this.changed()
    this.written()
  }

  /** The application wrote the key or may have read it: only pictures taken from now on are good enough. */
  written(): void {
    this.#seenVersion = Number.POSITIVE_INFINITY
    this.#epoch++
    if (!this.#isCatchingUp) this.#catchUp()
  }

  #catchUp(): void {
    this.#isCatchingUp = true
    const epoch = this.#epoch
    const giveBackAll = () => this.#serveWaiting(() => false)
    this.#servers.take((picture) => {
      this.#isCatchingUp = false
      this.#means.trouble.attempt(() => this.#tookPicture(picture, epoch), giveBackAll)
    })
  }

  #tookPicture(picture: Picture | undefined, epoch: number): void {
    if (this.#isClosed || picture === undefined) {
      this.#serveWaiting((read) => this.#readOriginal(read))
      return
    }
    this.#writer.putAll(picture, this.isRefresher)
    if (epoch !== this.#epoch) {
      this.#catchUp()
      return
    }
    this.#seenVersion = picture.version
    // After the puts on the same connections, so they find the new picture.
    this.#serveWaiting((read) => this.#read(read, true))
  }

  #serveWaiting(serve: (read: PendingRead) => boolean): void {
    for (const read of this.#waiting.splice(0)) {
      this.#means.trouble.attempt(
        () => serve(read) || this.#giveBack(read),
        () => this.#giveBack(read),
      )
    }
  }

  /** Maintains the election, the names, the copies and their markers; returns the milliseconds until the next call. */
  tick(): number {
    if (this.#isClosed) return restMs
    const now = this.#means.runtime.clock.now()
    this.#place()
    if (this.#seenVersion === Number.POSITIVE_INFINITY && !this.#isCatchingUp) this.#catchUp()
    const leftMs = this.#refresher.tick(now)
    this.#writer.look()
    return this.#seenVersion === Number.POSITIVE_INFINITY ? 0 : leftMs
  }

  /** One timer for all reads: they arrive in order, so the first that is left is the first to time out. */
  #setDeadline({ since }: PendingRead): void {
    if (this.#deadline !== undefined) return
    const { runtime, guards } = this.#means
    const leftMs = Math.max(0, since + guards.leaseMs - runtime.clock.now())
    this.#deadline = runtime.timers.setTimeout(() => this.#giveBackLate(), leftMs)
  }

  /** Reads that have waited for a whole lease are sent to Redis. */
  #giveBackLate(): void {
    this.#deadline = undefined
    const before = this.#means.runtime.clock.now() - this.#means.guards.leaseMs
    const late = [...this.#asked, ...this.#waiting].filter(({ since }) => since <= before)
    for (const read of late) {
      this.#asked.delete(read)
      const place = this.#waiting.indexOf(read)
      if (place >= 0) this.#waiting.splice(place, 1)
    }
    for (const read of late) this.#giveBack(read)
    const [next, ...others] = [...this.#asked, ...this.#waiting]
    if (next !== undefined) this.#setDeadline(others.reduce((a, b) => (b.since < a.since ? b : a), next))
  }

  /** The key has cooled: the refresher removes the copies; they would also expire by themselves. */
  close(): void {
    this.#isClosed = true
    this.#writer.close()
    this.#refresher.close()
  }

  #place(): void {
    const left = this.#placed.place()
    if (left === undefined) return
    for (const copy of left) this.#writer.leave(copy)
    this.#refresher.moved(left)
  }
}
