import { type FSWatcher, watch } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { type Clock, steadyClock, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import type { ChangeListener, ChangeSource, SourceState } from '../change/change.ts'
import { ChangeReader } from '../change/change-reader.ts'
import { WatchError } from '../errors.ts'
import { AofPartReader } from './aof-part-reader.ts'
import { increments, parseManifest } from './manifest.ts'

/** How an append-only file is followed. */
export interface AofTailOptions {
  /** Redis' `dir`. The file is read from disk, so this works on the server's own host only. */
  readonly folder: string
  /** Redis' `appendfilename`. @default 'appendonly.aof' */
  readonly fileName?: string
  /** Redis' `appenddirname` (Redis ≥ 7). @default 'appendonlydir' */
  readonly directoryName?: string
  /** Values up to this many bytes travel with the change. @default 1024 */
  readonly maxValueBytes?: number
  /** How often to look although the file system said nothing. @default 100 */
  readonly pollMs?: number
  readonly clock?: Clock
  readonly timers?: Timers
}

/**
 * Follows the append-only file of a Redis on the same host.
 *
 * Redis 7 writes several files and a manifest: a base, and increments of which the last is being written. At a rewrite
 * it first opens the next increment and names it in the manifest, then writes to it alone; so an increment is read to
 * its end once the manifest names a newer one, and nothing is missed. Older servers write one file (often with an RDB
 * at its head) and replace it at a rewrite: what was appended around the replacement cannot be told from what was in the
 * new file already, so that is told as a flush.
 *
 * A start, a truncated file and anything that does not parse are told as a flush too. With `appendfsync everysec` the
 * file is written at once and only synced later, so a tail sees a write when other clients do.
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
  #completeAt = Number.NEGATIVE_INFINITY
  #state: SourceState = { kind: 'connecting', reason: 'not started' }

  constructor(options: AofTailOptions, listener: ChangeListener) {
    this.#options = {
      fileName: 'appendonly.aof',
      directoryName: 'appendonlydir',
      maxValueBytes: 1024,
      pollMs: 100,
      clock: steadyClock,
      timers: systemTimers,
      ...options,
    }
    this.#listener = listener
    this.#reader = this.#newReader()
  }

  get state(): SourceState {
    return this.#state
  }

  /** When the last look began that read the file to its end: Redis writes it before it answers, so all is told. */
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

  /** One look at a time; a wake-up during it means one more look. */
  #wake(): void {
    this.#isWoken = true
    this.#running ??= this.#look().finally(() => {
      this.#running = undefined
    })
  }

  async #look(): Promise<void> {
    while (this.#isWoken && this.#state.kind !== 'closed') {
      this.#isWoken = false
      try {
        const beganAt = this.#options.clock.now()
        await this.#catchUp()
        this.#completeAt = beganAt
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
      await this.#open(folder, join(folder, last.file), 0, 'the append-only file is read from here on')
      this.#sequence = last.sequence
      return
    }
    // The open one first, to its end; then those that came after it, each whole.
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
      await this.#open(
        this.#options.folder,
        path,
        undefined,
        'the append-only file is read from here on, or was replaced',
      )
      return
    }
    await this.#drain(this.#part, (args) => this.#reader.read(args))
  }

  /** Begins a file: an increment is read silently up to where it is now, so that we stand between two commands. */
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
        throw new WatchError('FB_WATCH_AOF', `${part.path} became shorter than what was read of it`)
    }
  }

  async #startOver(error: NodeJS.ErrnoException): Promise<void> {
    await this.#part?.close().catch(() => {})
    const hadPart = this.#part !== undefined
    this.#part = undefined
    this.#sequence = -1
    const reason =
      error.code === 'ENOENT'
        ? 'there is no append-only file (is appendonly on, and this the server’s host?)'
        : error.message
    if (hadPart) this.#listener.onChange({ kind: 'flush', database: -1, reason })
    this.#listener.onProblem?.(error)
    this.#setState({ kind: 'connecting', reason })
  }

  #watch(folder: string): void {
    if (this.#watcher !== undefined) return
    this.#watcher = watch(folder, { persistent: false }, () => this.#wake())
    // A folder that goes away ends the watch; the timer still looks.
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
