import { chmodSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Timers } from '@firebreak/core'
import { newPrivateFile } from '@firebreak/core/node'
import type { open, RootDatabase } from 'lmdb'
import { DiskDriverMissingError } from '../errors.ts'
import { decodeRecord, encodeRecord } from './disk-record.ts'
import { WriteBatches } from './write-batches.ts'

type Open = typeof open

/** LMDB's `open`; throws if the package is not installed. */
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
  /** Nothing in it is needed after the process ends, so nothing is waited for. */
  readonly isTemporary: boolean
  /** Bytes that may wait to be written; beyond that only a single record is accepted. */
  readonly maxPendingBytes: number
  readonly timers: Timers
  readonly onFailure: (error: unknown) => void
}

/**
 * Bytes by id in an LMDB file. Writes go out in batches on LMDB's own thread, and until one has finished its bytes are
 * read from here; reads fault their pages in on a thread too, so that no disk ever holds up the process.
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
    // LMDB would make them as the umask says, in a folder that may be open to others: replies are values.
    for (const path of [file, `${file}-lock`]) {
      newPrivateFile(path)
      chmodSync(path, 0o600)
    }
    this.#database = openFile<Buffer, string>({
      path: file,
      noSubdir: true,
      encoding: 'binary',
      noSync: isTemporary,
      // LMDB's own batch of a turn has a promise that is out of reach, and its rejection would end the process.
      eventTurnBatching: false,
    })
    this.#batches = new WriteBatches(this.#database)
  }

  /** Bytes waiting to be written. */
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

  /** False if too much is waiting already. */
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

  /** Calls back later with the reply, undefined if there is none or it is damaged. */
  read(id: string, onRead: (reply: Buffer | undefined) => void): void {
    this.#reads.push({ id, onRead })
    if (this.#reads.length === 1) this.#options.timers.setImmediate(() => this.#readAll())
  }

  /** Some ids in order, from one on. */
  idsFrom(start: string, limit: number): string[] {
    return [...this.#database.getKeys({ start, limit })]
  }

  /** Writes what is waiting and closes the file. */
  async close(): Promise<void> {
    this.#isClosed = true
    await this.#batches.allDone()
    await this.#database.close()
  }

  /** One trip to the thread and back for all reads of a turn. */
  #readAll(): void {
    const reads = this.#reads
    this.#reads = []
    const ids = reads.map(({ id }) => id)
    const answer = () => {
      for (const { id, onRead } of reads) onRead(this.#take(id))
    }
    // Using LMDB after it is closed throws later, where nobody can catch it.
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
      // The underlying cause is reported by its own promise.
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
