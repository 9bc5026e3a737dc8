import { createRequire } from 'node:module'
import type { Timers } from '@firebreak/core'
import type { open, RootDatabase } from 'lmdb'
import { DiskDriverMissingError } from '../errors.ts'
import { decodeRecord, encodeRecord } from './disk-record.ts'
import { WriteBatches } from './write-batches.ts'

type Open = typeof open

/** LMDB's `open`; throws where the package is not installed. */
export function loadLmdb(load: (name: string) => unknown = createRequire(import.meta.url)): Open {
  try {
    return (load('lmdb') as { open: Open }).open
  } catch (cause) {
    throw new DiskDriverMissingError(cause)
  }
}

/** How an LMDB file is used. */
export interface LmdbStoreOptions {
  readonly open: Open
  readonly file: string
  /** Nothing in it is wanted after the process, so nothing is waited for. */
  readonly isTemporary: boolean
  /** Bytes that may wait to be written; more are not taken, but for one record alone. */
  readonly maxPendingBytes: number
  readonly timers: Timers
  readonly onFailure: (error: unknown) => void
}

/**
 * Bytes by id in an LMDB file. Writes go out in batches on LMDB's own thread, and until one is through its bytes are read
 * from here; reads fault their pages in on a thread too, so that no disk ever holds up the process.
 */
export class LmdbStore {
  readonly #database: RootDatabase<Buffer, string>
  readonly #options: LmdbStoreOptions
  readonly #batches: WriteBatches
  readonly #pending = new Map<string, Buffer>()
  #pendingBytes = 0
  #reads: WaitingRead[] = []
  #isClosed = false

  constructor(options: LmdbStoreOptions) {
    this.#options = options
    const { open: openFile, file, isTemporary } = options
    this.#database = openFile<Buffer, string>({
      path: file,
      noSubdir: true,
      encoding: 'binary',
      noSync: isTemporary,
      // LMDB's own batch of a turn has a promise that nobody can reach, and its rejection would end the process.
      eventTurnBatching: false,
    })
    this.#batches = new WriteBatches(this.#database)
  }

  /** Bytes that wait to be written. */
  get pendingBytes(): number {
    return this.#pendingBytes
  }

  get entryCount(): number {
    return this.#stats().root.entryCount
  }

  /** Bytes of the pages that hold records. */
  get usedBytes(): number {
    const { pageSize, treeBranchPageCount, treeLeafPageCount, overflowPages } = this.#stats().root
    return (treeBranchPageCount + treeLeafPageCount + overflowPages) * pageSize
  }

  get fileBytes(): number {
    const { lastPageNumber, pageSize } = this.#stats()
    return (lastPageNumber + 1) * pageSize
  }

  /** False where too much waits already. */
  put(id: string, reply: Uint8Array): boolean {
    if (this.#pendingBytes > 0 && this.#pendingBytes + reply.length > this.#options.maxPendingBytes) return false
    const record = encodeRecord(reply)
    this.#forgetPending(id)
    this.#pending.set(id, record)
    this.#pendingBytes += record.length
    this.#write(this.#database.put(id, record), () => {
      if (this.#pending.get(id) === record) this.#forgetPending(id)
    })
    return true
  }

  remove(id: string): void {
    this.#forgetPending(id)
    this.#write(this.#database.remove(id))
  }

  /** Calls back later with the reply, undefined where there is none or it is damaged. */
  read(id: string, onRead: (reply: Buffer | undefined) => void): void {
    this.#reads.push({ id, onRead })
    if (this.#reads.length === 1) this.#options.timers.setImmediate(() => this.#readAll())
  }

  /** Some ids in order, from one on. */
  idsFrom(start: string, limit: number): string[] {
    return [...this.#database.getKeys({ start, limit })]
  }

  /** Writes what waits and closes the file. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#batches.allDone()
    await this.#database.close()
  }

  /** One way to the thread and back for all reads of a turn. */
  #readAll(): void {
    const reads = this.#reads
    this.#reads = []
    const ids = reads.map(({ id }) => id)
    const answer = () => {
      for (const { id, onRead } of reads) onRead(this.#take(id))
    }
    // LMDB that is asked after its end throws later, where nobody can catch it.
    if (this.#isClosed) answer()
    else this.#database.prefetch(ids, answer)
  }

  #take(id: string): Buffer | undefined {
    if (this.#isClosed) return undefined
    try {
      const record = this.#pending.get(id) ?? this.#database.getBinary(id)
      return record === undefined ? undefined : decodeRecord(record)
    } catch (error) {
      this.#options.onFailure(error)
      return undefined
    }
  }

  #write(written: Promise<unknown>, onWritten: () => void = () => {}): void {
    written.then(onWritten, (error: WriteError) => {
      // What lies behind is told by a promise of its own.
      if (error.commitError === undefined) this.#options.onFailure(error)
      else error.commitError.catch((cause) => this.#options.onFailure(cause))
    })
  }

  #forgetPending(id: string): void {
    const record = this.#pending.get(id)
    if (record === undefined) return
    this.#pending.delete(id)
    this.#pendingBytes -= record.length
  }

  #stats(): LmdbStats {
    return this.#database.getStats() as LmdbStats
  }
}

interface WriteError extends Error {
  readonly commitError?: Promise<never>
}

interface WaitingRead {
  readonly id: string
  readonly onRead: (reply: Buffer | undefined) => void
}

interface LmdbStats {
  readonly pageSize: number
  readonly lastPageNumber: number
  readonly root: {
    readonly pageSize: number
    readonly entryCount: number
    readonly treeBranchPageCount: number
    readonly treeLeafPageCount: number
    readonly overflowPages: number
  }
}
