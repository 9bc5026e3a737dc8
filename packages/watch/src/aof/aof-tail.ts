import { type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import { Retry, type RetryPolicy } from '@firebreak/core/settings'
import type { ChangeListener, ChangeSource, SourceState } from '../change/change.ts'
import { ChangeReader } from '../change/change-reader.ts'
import { sourceRetrySteps } from '../change/source-retry.ts'
import { WatchError } from '../errors.ts'
import { AofPartReader } from './aof-part-reader.ts'
import { increments, parseManifest } from './manifest.ts'

/** How an append-only file is followed. */
export interface AofTailOptions {
  /** Redis' `dir`. The file is read from disk, so this works only on the server's own host. */
  readonly folder: string
  /** Redis' `appendfilename`. @default 'appendonly.aof' */
  readonly fileName?: string
  /** Redis' `appenddirname` (Redis ≥ 7). @default 'appendonlydir' */
  readonly directoryName?: string
  /** Values up to this many bytes are sent along with the change. @default 1024 */
  readonly maxValueBytes?: number
  /** How often to check the file when the file system reports nothing. @default 100 */
  readonly pollMs?: number
  /**
   * How often, and for how long, to retry a file that cannot be read. @default `sourceRetrySteps.aof`: forever, every
   * 100 ms
   */
  readonly retry?: RetryPolicy
  readonly clock?: Clock
  readonly timers?: Timers
  readonly random?: () => number
}

/**
 * Follows the append-only file of a Redis on the same host.
 *
 * Redis 7 writes a manifest and several files: a base, and increments, the last of which is being written. A rewrite
 * first opens the next increment and names it in the manifest, then writes only to that one. So we read an increment to
 * its end once the manifest names a newer one, and miss nothing. Older servers write one file (often with an RDB at its
 * head) and replace it in a rewrite. What was appended around the replacement cannot be told apart from what the new
 * file already held, so we report it as a flush.
 *
 * A start, a truncated file and anything that does not parse are reported as a flush too. With `appendfsync everysec`
 * the file is written at once and synced later, so a tail sees a write when other clients do.
 */
export class AofTail implements ChangeSource {
  readonly #options: Required<AofTailOptions>
  readonly #listener: ChangeListener
  #reader: ChangeReader
  #part: AofPartReader | undefined
  #sequence = -1
  #watcher: FSWatcher | undefined
  #timer: TimerHandle | undefined
  #running: Promise<void> | undefined
  #isWoken = false
  readonly #retry: Retry
  /** No check before this time. */
  #notBefore = Number.NEGATIVE_INFINITY
  #completeAt = Number.NEGATIVE_INFINITY
  #state: SourceState = { kind: 'connecting', reason: 'not started' }

  constructor(options: AofTailOptions, listener: ChangeListener) {
    this.#options = {
      fileName: 'appendonly.aof',
      directoryName: 'appendonlydir',
      maxValueBytes: 1024,
      pollMs: 100,
      retry: sourceRetrySteps.aof.policy,
      random: Math.random,
      clock: steadyClock,
      timers: systemTimers,
      ...options,
    }
    this.#listener = listener
    this.#retry = new Retry(this.#options.retry, this.#options)
    this.#reader = this.#newReader()
  }

  get state(): SourceState {
    return this.#state
  }

  /**
   * When the last check that read the file to its end began. Redis writes the file before it answers, so everything
   * answered by then has been reported.
   */
  get completeAt(): number {
    return this.#completeAt
  }

  start(): void {
    this.#timer = this.#options.timers.setInterval(() => this.#wake(), this.#options.pollMs)
    this.#wake()
  }

  async close(): Promise<void> {
    this.#setState({ kind: 'closed' })
    this.#timer?.cancel()
    this.#watcher?.close()
    await this.#running
    await this.#part?.close()
  }

  #newReader(): ChangeReader {
    return new ChangeReader(this.#options.maxValueBytes, (change) => this.#listener.onChange(change))
  }

  /** One check at a time; a wake-up during a check means one more check. */
  #wake(): void {
    if (this.#state.kind === 'failed' || this.#options.clock.now() < this.#notBefore) return
    this.#isWoken = true
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined
    })
  }

  async #look(): Promise<void> {
    while (this.#isWoken && this.#state.kind !== 'closed' && this.#state.kind !== 'failed') {
      this.#isWoken = false
      try {
        const beganAt = this.#options.clock.now()
        await this.#catchUp()
        this.#completeAt = beganAt
        this.#retry.succeeded()
        this.#setState({ kind: 'live' })
      } catch (error) {
        await this.#startOver(error as NodeJS.ErrnoException)
      }
    }
  }

  async #catchUp(): Promise<void> {
    const folder = join(this.#options.folder, this.#options.directoryName)
    const manifest = await readIfThere(join(folder, `${this.#options.fileName}.manifest`))
    if (manifest !== undefined) await this.#catchUpParts(folder, manifest)
    else await this.#catchUpSingle(join(this.#options.folder, this.#options.fileName))
  }

  async #catchUpParts(folder: string, manifest: string): Promise<void> {
    const parts = increments(parseManifest(manifest))
    const last = parts.at(-1)
    if (last === undefined) throw new WatchError('FB_WATCH_AOF', 'the AOF manifest names no increment')
    if (this.#part === undefined) {
      await this.#open(folder, join(folder, last.file), 0, 'started reading the append-only file at its end')
      this.#sequence = last.sequence
      return
    }
    // Reads the open file to its end, then each newer one in full.
    await this.#drain(this.#part, (args) => this.#reader.read(args))
    for (const { file, sequence } of parts) {
      if (sequence <= this.#sequence) continue
      await this.#part.close()
      this.#part = await AofPartReader.open(join(folder, file), 0)
      this.#sequence = sequence
      await this.#drain(this.#part, (args) => this.#reader.read(args))
    }
  }

  async #catchUpSingle(path: string): Promise<void> {
    const { ino } = await stat(path)
    if (this.#part === undefined || (await this.#part.inode()) !== ino) {
      if (this.#part !== undefined) await this.#drain(this.#part, (args) => this.#reader.read(args))
      await this.#part?.close()
      await this.#open(this.#options.folder, path, undefined, 'the append-only file was opened at its end or replaced')
      return
    }
    await this.#drain(this.#part, (args) => this.#reader.read(args))
  }

  /** Opens a file. An increment is first read silently up to its current end, so that we are between two commands. */
  async #open(folder: string, path: string, offset: number | undefined, reason: string): Promise<void> {
    this.#watch(folder)
    this.#part = await AofPartReader.open(path, offset)
    const silent = new ChangeReader(0, () => {})
    if (offset !== undefined) await this.#drain(this.#part, (args) => silent.read(args))
    this.#reader = this.#newReader()
    // The reader must know which database the file has selected.
    this.#reader.read([new TextEncoder().encode('SELECT'), new TextEncoder().encode(String(silent.database))])
    this.#listener.onChange({ kind: 'flush', database: -1, reason })
  }

  async #drain(part: AofPartReader, onCommand: (args: readonly Uint8Array[]) => void): Promise<void> {
    for (;;) {
      const result = await part.read(onCommand)
      if (result === 'end') return
      if (result === 'truncated')
        throw new WatchError('FB_WATCH_AOF', `${part.path} was truncated below the position already read`)
    }
  }

  async #startOver(error: NodeJS.ErrnoException): Promise<void> {
    await this.#part?.close().catch(() => {})
    const hadPart = this.#part !== undefined
    this.#part = undefined
    this.#sequence = -1
    const reason =
      error.code === 'ENOENT'
        ? 'no append-only file found (is appendonly on, and is this the server’s host?)'
        : error.message
    if (hadPart) this.#listener.onChange({ kind: 'flush', database: -1, reason })
    this.#listener.onProblem?.(error)
    const pauseMs = this.#retry.failed()
    if (pauseMs === undefined) {
      this.#timer?.cancel()
      this.#setState({ kind: 'failed', reason: `${reason}; given up after ${this.#retry.summary}` })
      return
    }
    this.#isWoken = false
    this.#notBefore = this.#options.clock.now() + pauseMs
    this.#setState({ kind: 'connecting', ...this.#retry.overdue(reason) })
  }

  #watch(folder: string): void {
    if (this.#watcher !== undefined) return
    this.#watcher = watch(folder, { persistent: false }, () => this.#wake())
    // A folder that disappears ends the watch; the timer keeps checking.
    this.#watcher.on('error', () => {
      this.#watcher?.close()
      this.#watcher = undefined
    })
  }

  #setState(state: SourceState): void {
    if (this.#state.kind === 'closed' || (state.kind === this.#state.kind && state.kind === 'live')) return
    this.#state = state
    this.#listener.onState?.(state)
  }
}

async function readIfThere(path: string): Promise<string | undefined> {
  try {
    return await readFile(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
