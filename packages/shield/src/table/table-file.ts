import { mkdirSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import {
  type Clock,
  entryToJson,
  explainDiskTrouble,
  type TableSnapshot,
  type TimerHandle,
  type Timers,
} from '@firebreak/core'
import type { Trouble } from '../trouble/trouble.ts'
import type { KeptEntries } from './kept-entries.ts'
import { readSnapshot } from './read-table.ts'

/** The last good table as stored in the file. */
export interface SavedTable {
  readonly snapshot: TableSnapshot
  /** Hub time minus local time when it was saved, so that `until` can be judged before a hub is heard. */
  readonly hubOffsetMs: number
}

/** What a table's file works with. */
export interface TableFileMeans {
  readonly trouble: Trouble
  readonly clock: Clock
  readonly wallClock: Clock
  readonly timers: Timers
}

/** The shortest time between the end of one write and the next. */
const pauseMs = 1000
/** Writing takes at most this fraction of the time (1 / n). */
const restShare = 50
/** Entries serialised in one turn of the event loop, about a millisecond. */
const entriesPerTurn = 250
/** Half-written files of dead processes are removed after this. */
const leftoverMs = 600_000
let opened = 0

/**
 * The file with the last good table, so that a process that starts while there is no hub knows what is hot. It is
 * written next to its place and renamed, so a reader never sees half of it, whenever the writer dies, and several
 * processes of a service may share it.
 *
 * A change is written at once if none was for a second, otherwise when that second is over; a table that takes long to
 * write is written less often. What is written is the table at one moment, serialised a few hundred entries at a time,
 * so that a large one does not hold up the application.
 */
export class TableFile {
  /** Shields of one process may share the file: each writes beside it under a name of its own. */
  readonly #number = ++opened
  readonly #path: string
  readonly #source: () => SavedTable
  readonly #means: TableFileMeans
  #isDirty = false
  #isWriting = false
  #isClosed = false
  #timer: TimerHandle | undefined
  #mayWriteAt = Number.NEGATIVE_INFINITY

  /** `source` returns the current table. */
  constructor(path: string, source: () => SavedTable, means: TableFileMeans) {
    this.#path = path
    this.#source = source
    this.#means = means
  }

  /** The saved table; undefined if there is none that can be read. */
  read(pool: KeptEntries): SavedTable | undefined {
    let text: string
    try {
      text = readFileSync(this.#path, 'utf8')
    } catch {
      return undefined
    }
    const { trouble } = this.#means
    try {
      return parse(text, trouble, pool)
    } catch (error) {
      trouble.note('table-file', `the table file ${this.#path} cannot be read; ignoring it`, error)
      return undefined
    }
  }

  /** The table has changed: it is written in the background, at once or soon. */
  changed(): void {
    this.#isDirty = true
    if (this.#isClosed || this.#isWriting || this.#timer !== undefined) return
    const { clock, timers } = this.#means
    this.#timer = timers.setTimeout(
      () => {
        this.#timer = undefined
        this.#write().catch((error) => this.#failed(error))
      },
      Math.max(0, this.#mayWriteAt - clock.now()),
    )
  }

  /** Writes at once what has not been written yet: for the end of a process. */
  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    if (!this.#isDirty && !this.#isWriting) return
    try {
      this.#makeFolder()
      const beside = this.#besidePath('now')
      writeFileSync(beside, [...pieces(this.#source())].join(''), { mode: 0o600 })
      renameSync(beside, this.#path)
    } catch (error) {
      this.#failed(error)
    }
  }

  async #write(): Promise<void> {
    const { clock } = this.#means
    const startedAt = clock.now()
    this.#isWriting = true
    this.#isDirty = false
    try {
      this.#makeFolder()
      await this.#replace()
    } catch (error) {
      this.#failed(error)
    } finally {
      this.#isWriting = false
      const now = clock.now()
      this.#mayWriteAt = now + Math.max(pauseMs, (now - startedAt) * restShare)
    }
    if (this.#isDirty) this.changed()
  }

  async #replace(): Promise<void> {
    const beside = this.#besidePath('new')
    const file = await open(beside, 'w', 0o600)
    try {
      for (const piece of pieces(this.#source())) {
        if (this.#isClosed) break
        await file.write(piece)
      }
    } finally {
      await file.close()
    }
    // Whoever closed it has written a newer one.
    if (this.#isClosed) await rm(beside, { force: true })
    else await rename(beside, this.#path)
  }

  #makeFolder(): void {
    const folder = dirname(this.#path)
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    const oldest = this.#means.wallClock.now() - leftoverMs
    for (const name of readdirSync(folder)) {
      if (!name.startsWith(`${basename(this.#path)}.`) || !/\.\d+(-\d+)?\.(new|now)$/.test(name)) continue
      const path = join(folder, name)
      const { mtimeMs } = statSync(path, { throwIfNoEntry: false }) ?? {}
      if (mtimeMs !== undefined && mtimeMs < oldest) rmSync(path, { force: true })
    }
  }

  #besidePath(suffix: string): string {
    return `${this.#path}.${process.pid}-${this.#number}.${suffix}`
  }

  #failed(error: unknown): void {
    const why = explainDiskTrouble(error)
    this.#means.trouble.note('table-file', `cannot save the last good table to ${this.#path} (${why})`, error)
  }
}

/** The file's text, in pieces of a bounded number of entries. */
function* pieces({ snapshot, hubOffsetMs }: SavedTable): Generator<string> {
  const { entries, ...head } = snapshot
  yield `{"hubOffsetMs":${JSON.stringify(hubOffsetMs)},"snapshot":{${JSON.stringify(head).slice(1, -1)},"entries":[`
  for (let from = 0; from < entries.length; from += entriesPerTurn) {
    const part = entries.slice(from, from + entriesPerTurn)
    yield (from === 0 ? '' : ',') + part.map((entry) => JSON.stringify(entryToJson(entry))).join()
  }
  yield ']}}'
}

function parse(text: string, trouble: Trouble, pool: KeptEntries): SavedTable {
  const { snapshot, hubOffsetMs } = JSON.parse(text) as SavedTable
  if (typeof snapshot.epoch !== 'string' || !Number.isFinite(snapshot.version) || !Number.isFinite(hubOffsetMs))
    throw new TypeError('it lacks epoch, version or hubOffsetMs')
  return { hubOffsetMs, snapshot: readSnapshot(snapshot, trouble, pool) }
}
