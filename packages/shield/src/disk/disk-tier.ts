import { explainDiskTrouble, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import type { Trouble } from '../trouble/trouble.ts'
import type { Lease } from '../watcher/lease.ts'
import { DiskFolder } from './disk-folder.ts'
import { recordCost } from './disk-record.ts'
import {
  type DiskTierOptions,
  leastBytes,
  type ResolvedDiskTierOptions,
  resolveDiskTierOptions,
} from './disk-tier-options.ts'
import { checkFile } from './file-check.ts'
import { LmdbStore, loadLmdb } from './lmdb-store.ts'

/** A reply whose bytes are on disk; everything that determines whether they may be served stays in memory. */
export interface DiskReply {
  readonly id: string
  readonly bytes: number
  readonly expiresAt: number
  readonly lease: Lease
  /** The tier has evicted it to make room. */
  onEvicted(): void
}

/** The state of a tier; `failed`: the caches are only in memory. */
export type DiskTierState = 'checking' | 'open' | 'failed' | 'closed'

const sweepCount = 64
/** The file's size is checked once per this many bytes written. */
const lookEveryBytes = 2 ** 20

/**
 * The second tier of the local caches: what does not fit in memory, in an LMDB file.
 *
 * *Trust.* The file only holds bytes. Which of them may be served, until when and under which lease is known in memory
 * (`DiskReply`), so an invalidation is complete the moment it is handled, whatever the disk does. To distrust the whole
 * tier (a watcher was lost, something was flushed) is to start with an empty map: the records stay, but nothing vouches
 * for them.
 *
 * *Untrusted records*, including those of an earlier process, are only read to ask Redis for the digest of what it
 * would answer: if it is the same, the value need not be sent. They are removed first when room is needed.
 *
 * *Bound.* Trusted and untrusted records together take at most half of `maxBytes`, evicted least recently used first;
 * LMDB rewrites changed pages before it frees the old ones. An LMDB file never shrinks, so one that exceeds `maxBytes`
 * anyway is replaced by an empty one. The number of bytes in untrusted records is an estimate (their sum is known, each
 * one's size is not) and exact again after each full sweep.
 *
 * *Problems* of any kind are reported once and leave the caches only in memory. A file that cannot be written (the disk
 * is full) is abandoned at once and removed, so that others can use its room; every `retryAfterMs` we check whether
 * there is room for a new one. LMDB trusts its files so much that a damaged one kills the process, so an existing file
 * is first read by another process (`check-file.ts`).
 */
export class DiskTier {
  readonly options: ResolvedDiskTierOptions
  readonly #trouble: Trouble
  readonly #timers: Timers
  readonly #lmdb: ReturnType<typeof loadLmdb>
  readonly #folder: DiskFolder | undefined
  #state: DiskTierState = 'checking'
  #store: LmdbStore | undefined
  /** As `options.maxBytes`, or less if the disk has less. */
  #maxBytes = 0
  #retry: TimerHandle | undefined
  /** The size that the file was to reach when it could not be written; undefined if all is well. */
  #failedAtBytes: number | undefined
  /** In order of last use. */
  #trusted = new Map<string, DiskReply>()
  #trustedBytes = 0
  #untrustedCount = 0
  #untrustedBytes = 0
  #sweepFrom = ''
  #writtenBytes = 0

  constructor(
    options: DiskTierOptions,
    trouble: Trouble,
    timers: Timers = systemTimers,
    load?: (name: string) => unknown,
  ) {
    this.options = resolveDiskTierOptions(options)
    this.#trouble = trouble
    this.#timers = timers
    this.#lmdb = loadLmdb(load)
    try {
      this.#folder = DiskFolder.take(this.options.path)
    } catch (error) {
      this.#failed(error)
      return
    }
    if (!this.options.survivesRestart) {
      this.#open()
      return
    }
    const onChecked = (isSound: boolean) => {
      if (this.#state !== 'checking') return
      if (isSound) this.#open()
      else this.#damaged()
    }
    checkFile(this.#folder.file, timers, trouble.guarded(onChecked))
  }

  get state(): DiskTierState {
    return this.#state
  }

  /** Records that may be served. */
  get size(): number {
    return this.#trusted.size
  }

  /** Bytes of all records, as far as known. */
  get bytes(): number {
    return this.#trustedBytes + this.#untrustedBytes
  }

  /** Bytes that are not yet in the file. */
  get waitingBytes(): number {
    return this.#store?.pendingBytes ?? 0
  }

  /** Bytes of the file. */
  get fileBytes(): number {
    return this.#store?.fileBytes ?? 0
  }

  /** Stores a reply's bytes; false if that is currently not possible. */
  put(reply: DiskReply, bytes: Uint8Array): boolean {
    const cost = recordCost(bytes.length)
    if (this.#store === undefined || cost > this.#roomBytes || !this.#store.put(reply.id, bytes)) return false
    this.#untrack(reply.id)
    this.#trusted.set(reply.id, reply)
    this.#trustedBytes += cost
    this.#makeRoom()
    this.#look(cost)
    return true
  }

  /** True while the reply's bytes are there and may be served, as far as the tier knows. */
  holds(reply: DiskReply): boolean {
    return this.#trusted.get(reply.id) === reply
  }

  /** Calls back later with the bytes; undefined if the tier has lost them or no longer trusts them. */
  read(reply: DiskReply, onRead: (bytes: Uint8Array | undefined) => void): void {
    if (this.#store === undefined || !this.holds(reply)) {
      queueMicrotask(this.#trouble.guarded(() => onRead(undefined)))
      return
    }
    // Now the most recently used.
    this.#trusted.delete(reply.id)
    this.#trusted.set(reply.id, reply)
    this.#read(this.#store, reply.id, (bytes) => {
      if (bytes === undefined && this.holds(reply)) this.remove(reply)
      onRead(this.holds(reply) ? bytes : undefined)
    })
  }

  /** Removes a reply that is no longer valid. */
  remove(reply: DiskReply): void {
    if (!this.holds(reply)) return
    this.#untrack(reply.id)
    this.#store?.remove(reply.id)
  }

  /** Calls back later with bytes that nothing vouches for; false if there are none under the id. */
  readUntrusted(id: string, onRead: (bytes: Uint8Array | undefined) => void): boolean {
    if (this.#store === undefined || this.#untrustedCount === 0 || this.#trusted.has(id)) return false
    this.#read(this.#store, id, onRead)
    return true
  }

  /** LMDB calls back from its thread, where nobody would catch an error. */
  #read(store: LmdbStore, id: string, onRead: (bytes: Uint8Array | undefined) => void): void {
    store.read(id, (bytes) => {
      this.#trouble.attempt(
        () => onRead(bytes),
        () => bytes !== undefined && onRead(undefined),
      )
    })
  }

  /** Removes what was found to be invalid. */
  removeUntrusted(id: string): void {
    if (this.#trusted.has(id)) return
    this.#store?.remove(id)
  }

  /** From now on nothing vouches for anything in the file. */
  distrust(): void {
    if (this.#trusted.size === 0) return
    this.#untrustedCount += this.#trusted.size
    this.#untrustedBytes += this.#trustedBytes
    this.#trusted = new Map()
    this.#trustedBytes = 0
    this.#sweepFrom = ''
  }

  /** Closes the tier. Records stay in the folder if they are to survive. */
  async close(): Promise<void> {
    if (this.#state === 'closed') return
    const store = this.#store
    this.#retry?.cancel()
    this.#end('closed')
    try {
      await store?.close()
      if (!this.options.survivesRestart) this.#folder?.wipe()
    } catch (error) {
      this.#tell('could not be closed', error)
    }
    this.#folder?.release()
  }

  get #roomBytes(): number {
    return this.#maxBytes / 2
  }

  #open(): void {
    const folder = this.#folder!
    const { survivesRestart, maxBytes } = this.options
    try {
      if (survivesRestart) folder.dropLocks()
      else folder.wipe()
      this.#maxBytes = Math.min(maxBytes, folder.roomBytes / 2)
      if (this.#maxBytes < leastBytes) {
        this.#failedAtBytes ??= 0
        this.#failed(new Error(`the disk has room for less than ${leastBytes * 2} bytes`))
        this.#retryLater()
        return
      }
      const store = new LmdbStore({
        open: this.#lmdb,
        file: folder.file,
        isTemporary: !survivesRestart,
        timers: this.#timers,
        maxPendingBytes: this.#maxBytes / 16,
        onFailure: this.#trouble.guarded((error) => this.#unwritten(store, error)),
      })
      this.#store = store
      this.#untrustedCount = this.#store.entryCount
      this.#untrustedBytes = this.#untrustedCount === 0 ? 0 : this.#store.usedBytes
      this.#state = 'open'
      this.#makeRoom()
    } catch (error) {
      this.#failed(error)
    }
  }

  #makeRoom(): void {
    while (this.bytes > this.#roomBytes && this.#untrustedCount > 0) this.#sweep()
    while (this.bytes > this.#roomBytes) {
      const [oldest] = this.#trusted.values()
      if (oldest === undefined) return
      this.remove(oldest)
      oldest.onEvicted()
    }
  }

  /** Removes some of the untrusted records. */
  #sweep(): void {
    const store = this.#store!
    const ids = store.idsFrom(this.#sweepFrom, sweepCount)
    const meanBytes = this.#untrustedBytes / this.#untrustedCount
    for (const id of ids) {
      if (this.#trusted.has(id)) continue
      store.remove(id)
      this.#untrustedCount--
      this.#untrustedBytes -= meanBytes
    }
    this.#sweepFrom = `${ids.at(-1) ?? ''}\u0000`
    if (ids.length === sweepCount && this.#untrustedCount > 0) return
    this.#untrustedCount = 0
    this.#untrustedBytes = 0
  }

  #look(written: number): void {
    this.#writtenBytes += written
    if (this.#writtenBytes < Math.min(lookEveryBytes, this.#maxBytes / 16)) return
    this.#writtenBytes = 0
    const { fileBytes } = this
    if (this.#failedAtBytes !== undefined && fileBytes > this.#failedAtBytes) {
      // It got further than the previous one: its next problem is news.
      this.#failedAtBytes = undefined
      this.#trouble.clear('disk-tier')
    }
    if (fileBytes > this.#maxBytes) this.#startAnew()
  }

  /** Starts with an empty file. */
  #startAnew(): void {
    const old = this.#store!
    this.#end('checking')
    try {
      this.#giveUp(old)
    } catch (error) {
      this.#failed(error)
      return
    }
    this.#open()
  }

  /** Removes a file; it lives on without a name until it is closed. */
  #giveUp(store: LmdbStore): void {
    this.#folder!.wipe()
    store.close().catch((error) => this.#tell('could not be closed', error))
  }

  /** A file could not be written or read: nothing in it is served any more. */
  #unwritten(store: LmdbStore, error: unknown): void {
    if (store !== this.#store) return
    this.#failedAtBytes = this.fileBytes + this.waitingBytes
    this.#failed(error)
    try {
      this.#giveUp(store)
    } catch {
      // It is wiped before the next one is opened, or that fails too.
    }
    this.#retryLater()
  }

  #retryLater(): void {
    this.#retry = this.#timers.setTimeout(() => {
      this.#state = 'checking'
      this.#open()
    }, this.options.retryAfterMs)
  }

  #untrack(id: string): void {
    const known = this.#trusted.get(id)
    if (known === undefined) return
    this.#trusted.delete(id)
    this.#trustedBytes -= recordCost(known.bytes)
  }

  #damaged(): void {
    this.#failed(new Error('the file is damaged and was removed; the next start creates an empty one'))
    try {
      this.#folder!.wipe()
    } catch {
      // It stays; the next start will find it damaged again.
    }
  }

  #failed(error: unknown): void {
    if (this.#state === 'closed' || this.#state === 'failed') return
    this.#end('failed')
    this.#tell('cannot be used', error)
  }

  #end(state: DiskTierState): void {
    this.#state = state
    this.#store = undefined
    this.#trusted = new Map()
    this.#trustedBytes = 0
    this.#untrustedCount = 0
    this.#untrustedBytes = 0
  }

  #tell(what: string, error: unknown): void {
    const why = explainDiskTrouble(error)
    const { path } = this.options
    this.#trouble.note(
      'disk-tier',
      `the disk tier in ${path} ${what} (${why}); hot keys are kept only in memory`,
      error,
    )
  }
}
