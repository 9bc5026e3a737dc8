import { createHash } from 'node:crypto'
import { closeSync, constants, fdatasyncSync, fstatSync, mkdirSync, openSync, readSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import { IdsError, messageOf } from '../errors.ts'
import { holdFileLock } from './file-lock.ts'

/** What a node keeps on its own disk. */
export interface CachedWorker {
  readonly workerId: number
  readonly ip: string
  readonly port: number
  /** The owner in the registry's record when this was last known to be ours. */
  readonly owner: string
  /** The clock when this was written. */
  readonly timestamp: number
  /** No id of a later time was issued. */
  readonly mark: number
  /** When the registry last confirmed the worker id. */
  readonly reportedAt: number
  /** The registry no longer assigns this worker id to the node: only the mark is useful. */
  readonly isLost?: true
}

/** The result of a read. */
export type CacheRead =
  | { readonly kind: 'valid'; readonly worker: CachedWorker }
  | { readonly kind: 'missing' | 'broken' | 'foreign'; readonly why: string }

/** Where a node keeps its worker id and mark while it is not running. */
export interface WorkerCache {
  /** For messages. */
  readonly path: string
  read(): CacheRead
  /** Returns once the disk has it. */
  write(worker: CachedWorker): void
  close(): void
}

const recordBytes = 512
const fields = ['workerId', 'port', 'timestamp', 'mark', 'reportedAt'] as const

/**
 * Worker id and high-water mark in a local file: one line of JSON, padded to 512 bytes, a disk's smallest unit, and
 * overwritten in place, so that a write is complete or absent; a digest shows damage. The line contains the file's own
 * inode and birth time: a copy has others and is not trusted, wherever it was copied to. A lock file, which the system
 * releases with the process, keeps a second node from using the same file.
 */
export class CacheFile implements WorkerCache {
  readonly path: string
  readonly #descriptor: number
  readonly #identity: string
  readonly #unlock: () => void
  #isClosed = false

  private constructor(path: string, descriptor: number, unlock: () => void) {
    this.path = path
    this.#descriptor = descriptor
    // A freed inode is soon reused, hence the birth time.
    const { ino, birthtimeNs } = fstatSync(descriptor, { bigint: true })
    this.#identity = `${ino}.${birthtimeNs}`
    this.#unlock = unlock
  }

  /** Opens (or creates) the file and locks it; `FB_IDS_CACHE_LOCKED` if another node has it. */
  static open(path: string): CacheFile {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
    const unlock = holdFileLock(`${path}.lock`)
    try {
      return new CacheFile(path, openSync(path, constants.O_RDWR | constants.O_CREAT, 0o600), unlock)
    } catch (cause) {
      unlock()
      const sentence = `the cache file ${path} cannot be opened (${messageOf(cause)})`
      throw new IdsError('FB_IDS_CACHE_BROKEN', sentence, { path }, { cause })
    }
  }

  read(): CacheRead {
    const bytes = Buffer.alloc(recordBytes + 1)
    const length = readSync(this.#descriptor, bytes, 0, bytes.length, 0)
    if (length === 0) return { kind: 'missing', why: 'it is empty' }
    if (length !== recordBytes) return { kind: 'broken', why: `it has ${length} bytes instead of ${recordBytes}` }
    let value: Record<string, unknown>
    try {
      value = JSON.parse(bytes.toString('utf8', 0, length)) as Record<string, unknown>
    } catch {
      return { kind: 'broken', why: 'it is not JSON' }
    }
    const { digest, identity, ...worker } = value
    if (digest !== digestOf({ ...worker, identity })) return { kind: 'broken', why: 'its digest is wrong' }
    if (!fields.every((field) => Number.isSafeInteger(worker[field]))) {
      return { kind: 'broken', why: 'a number is missing' }
    }
    if (identity !== this.#identity) return { kind: 'foreign', why: 'it is a copy of another file' }
    return { kind: 'valid', worker: worker as unknown as CachedWorker }
  }

  /** Writes and waits for the disk. */
  write(worker: CachedWorker): void {
    const value = { ...worker, identity: this.#identity }
    const line = `${JSON.stringify({ ...value, digest: digestOf(value) }).padEnd(recordBytes - 1)}\n`
    writeSync(this.#descriptor, line, 0)
    fdatasyncSync(this.#descriptor)
  }

  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    closeSync(this.#descriptor)
    this.#unlock()
  }
}

function digestOf(value: Record<string, unknown>): string {
  const sorted = Object.fromEntries(Object.entries(value).sort(([a], [b]) => (a < b ? -1 : 1)))
  return createHash('sha256').update(JSON.stringify(sorted)).digest('hex').slice(0, 16)
}
