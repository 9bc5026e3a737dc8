import {
  asListener,
  type Clock,
  InvalidOptionError,
  plainLines,
  type Runtime,
  systemRuntime,
  type TimerHandle,
} from '@firebreak/core'
import { IdsError, messageOf } from '../errors.ts'
import type { IdsAlarm } from '../node/node-options.ts'
import { checkCount } from '../snowflake/layout.ts'
import { requireAbove0 } from '../time/require-above-0.ts'
import { type BufferOptions, type BufferStatus, SegmentBuffer } from './segment-buffer.ts'
import { type SegmentStore, type TagRow, tagUnknown } from './segment-store.ts'

/** Options of segment ids. */
export interface SegmentIdsOptions {
  /** The databases with a table `leaf_alloc`; each tag is in one of them. */
  readonly stores: readonly SegmentStore[]
  /** How often the tags are reloaded. @default 60000 */
  readonly refreshEveryMs?: number
  /** How long callers wait for a load before they get an error. @default 1000 */
  readonly waitTimeoutMs?: number
  /** How soon to retry a failed load. @default 200 */
  readonly retryMs?: number
  /**
   * How long no new segment of a tag is taken after its `max_id` went back: longer than the `refreshEveryMs` of every
   * process that shares the table, so that all of them have raised it.
   * @default one and a half times `refreshEveryMs`
   */
  readonly settleMs?: number
  /** How many callers of a tag may wait at once. @default 1000000 */
  readonly maxWaiters?: number
  /** Called for everything that needs a human. @default process.emitWarning */
  readonly onAlarm?: (alarm: IdsAlarm) => void
  /** @default the system's */
  readonly runtime?: Runtime
}

/** One database for the console. */
export interface StoreStatus {
  readonly name: string
  readonly isUp: boolean
  readonly error: string | undefined
  /** Its rows as last read. */
  readonly rows: readonly (Omit<TagRow, 'maxId'> & { readonly maxId: string })[]
}

interface StoreState {
  readonly store: SegmentStore
  rows: readonly TagRow[]
  /** Whether its table was ever read. */
  isKnown: boolean
  error: string | undefined
}

const unknownTagRefreshMs = 1000
/** Tags that are gone from the tables but whose last id is remembered. */
const maxGoneTags = 100_000

/**
 * Ids by tag from segments of a database: increasing per process, unique over all that share the table.
 *
 * The tags of all databases are read at the start, every `refreshEveryMs`, and when a caller names an unknown one (at
 * most once a second). A tag that two databases have is served from the first of them and raises an alarm: another
 * server may read them in another order.
 */
export class SegmentIds {
  readonly #stores: readonly StoreState[]
  readonly #buffers = new Map<string, SegmentBuffer>()
  /** How far this process went with tags whose rows are gone: a restored table starts over, or with a lower number. */
  readonly #gone = new Map<string, bigint>()
  readonly #bufferOptions: BufferOptions
  readonly #onAlarm: (alarm: IdsAlarm) => void
  readonly #clock: Clock
  readonly #refresher: TimerHandle
  readonly #doubles = new Set<string>()
  #refreshing: Promise<void> | undefined
  #refreshedAt = Number.NEGATIVE_INFINITY
  #isClosed = false

  private constructor(options: SegmentIdsOptions) {
    if (options.stores.length === 0) throw new InvalidOptionError('stores', options.stores, 'at least one database')
    this.#stores = options.stores.map((store) => ({ store, rows: [], isKnown: false, error: undefined }))
    this.#onAlarm = asListener(
      options.onAlarm ??
        (({ code, message }) => process.emitWarning(plainLines(message), { type: 'FirebreakIds', code })),
    )
    const { clock, timers } = options.runtime ?? systemRuntime
    this.#clock = clock
    const refreshEveryMs = requireAbove0('refreshEveryMs', options.refreshEveryMs ?? 60_000)
    this.#bufferOptions = {
      waitTimeoutMs: requireAbove0('waitTimeoutMs', options.waitTimeoutMs ?? 1000),
      retryMs: requireAbove0('retryMs', options.retryMs ?? 200),
      settleMs: requireAbove0('settleMs', options.settleMs ?? refreshEveryMs * 1.5),
      maxWaiters: requireAbove0('maxWaiters', options.maxWaiters ?? 1_000_000),
      clock,
      timers,
      onFailure: ({ code, message }) => this.#onAlarm({ code, message }),
      onRecovery: () => {},
    }
    this.#refresher = timers.setInterval(() => void this.refresh(), refreshEveryMs)
  }

  /** Reads the tags of every database that answers; the others are retried when needed. */
  static async start(options: SegmentIdsOptions): Promise<SegmentIds> {
    const ids = new SegmentIds(options)
    await ids.refresh()
    return ids
  }

  /** An id from memory; undefined if one must be awaited with `next`. */
  take(tag: string): string | undefined {
    return this.#buffers.get(tag)?.take()
  }

  /** The next id of a tag. */
  async next(tag: string): Promise<string> {
    const buffer = this.#buffers.get(tag) ?? (await this.#findBuffer(tag))
    return buffer.take() ?? buffer.wait()
  }

  /** The next `count` ids of a tag, increasing but not always without gaps. */
  async nextMany(tag: string, count: number): Promise<string[]> {
    checkCount(count)
    const buffer = this.#buffers.get(tag) ?? (await this.#findBuffer(tag))
    const ids: string[] = []
    while (ids.length < count) ids.push(buffer.take() ?? (await buffer.wait()))
    return ids
  }

  /** Adds a tag to one of the databases: the named one, or the one with the fewest tags. */
  async addTag(
    tag: string,
    options: { step: number; maxId?: bigint; description?: string; store?: string },
  ): Promise<void> {
    const { step, maxId = 1n, description = '' } = options
    if (!/^[\w.:/@-]{1,128}$/.test(tag)) {
      throw new InvalidOptionError('tag', tag, '1 to 128 letters, digits, or any of _ . : / @ -')
    }
    if (!Number.isInteger(step) || step < 1 || step > 2 ** 31 - 1) {
      throw new InvalidOptionError('step', step, 'a whole number from 1 to 2147483647')
    }
    if (typeof maxId !== 'bigint' || maxId < 0n || maxId >= 1n << 63n) {
      throw new InvalidOptionError('maxId', maxId, 'a BigInt from 0 to 9223372036854775807')
    }
    await this.refresh()
    const candidates = this.#stores.filter(({ store }) => options.store === undefined || store.name === options.store)
    const weight = ({ rows, error }: StoreState) => (error === undefined ? rows.length : Number.POSITIVE_INFINITY)
    const target = candidates.sort((a, b) => (weight(a) < weight(b) ? -1 : 1))[0]
    if (target === undefined) throw new InvalidOptionError('store', options.store, 'the name of a database')
    if (this.#buffers.has(tag)) {
      throw new IdsError('FB_IDS_TAG_EXISTS', `the tag "${tag}" is in ${this.#buffers.get(tag)!.store.name} already`, {
        tag,
      })
    }
    try {
      await target.store.add(tag, step, maxId, description)
    } finally {
      // Even if another process was faster: its row is then known here at once.
      await this.refresh()
    }
  }

  /** The buffers, by tag. */
  buffers(): BufferStatus[] {
    return [...this.#buffers.values()].map((buffer) => buffer.status()).sort((a, b) => (a.tag < b.tag ? -1 : 1))
  }

  /** The databases and their rows as last read. */
  databases(): StoreStatus[] {
    return this.#stores.map(({ store, rows, error }) => ({
      name: store.name,
      isUp: error === undefined,
      error,
      rows: rows.map((row) => ({ ...row, maxId: String(row.maxId) })),
    }))
  }

  /** Reloads the tags; concurrent calls share one read. */
  refresh(): Promise<void> {
    this.#refreshing ??= this.#readAll().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#refresher.cancel()
    await this.#refreshing
    const error = new IdsError('FB_IDS_CLOSED', 'segment ids are closed')
    for (const buffer of this.#buffers.values()) buffer.close(error)
    await Promise.all(this.#stores.map(({ store }) => store.close()))
  }

  async #findBuffer(tag: string): Promise<SegmentBuffer> {
    if (this.#isClosed) throw new IdsError('FB_IDS_CLOSED', 'segment ids are closed')
    if (this.#clock.now() - this.#refreshedAt >= unknownTagRefreshMs) await this.refresh()
    const buffer = this.#buffers.get(tag)
    if (buffer !== undefined) return buffer
    const unread = this.#stores.find(({ isKnown }) => !isKnown)
    if (unread === undefined) throw tagUnknown(tag)
    const sentence = `"${tag}" is in no reachable database, and ${unread.store.name} does not (${unread.error})`
    throw new IdsError('FB_IDS_DATABASE_DOWN', sentence, { tag, store: unread.store.name })
  }

  async #readAll(): Promise<void> {
    // How far this process went before the tables are read: what it is given meanwhile is not in what is read.
    const highest = new Map(this.#gone)
    for (const [tag, buffer] of this.#buffers) highest.set(tag, buffer.highest)
    await Promise.all(this.#stores.map((state) => this.#read(state)))
    this.#refreshedAt = this.#clock.now()
    if (this.#isClosed) return
    const seen = new Set<string>()
    for (const { store, rows } of this.#stores) {
      for (const row of rows) {
        if (seen.has(row.tag)) this.#tellDouble(row.tag, store)
        else this.#know(row, store)
        seen.add(row.tag)
      }
    }
    // A row missing from a database that answered is gone; a database that does not answer proves nothing.
    for (const [tag, buffer] of this.#buffers) {
      if (seen.has(tag)) continue
      this.#buffers.delete(tag)
      this.#end(buffer)
    }
    await this.#checkAll(highest)
  }

  /** Raises what went back; where that fails, the next reading or the next segment does it. */
  async #checkAll(highest: ReadonlyMap<string, bigint>): Promise<void> {
    const checks = this.#stores.flatMap(({ store, rows }) =>
      rows.map(async ({ tag, maxId }) => {
        const buffer = this.#buffers.get(tag)
        if (buffer?.store === store) await buffer.check(maxId, highest.get(tag) ?? 0n)
      }),
    )
    await Promise.allSettled(checks)
  }

  #end(buffer: SegmentBuffer): void {
    buffer.close(tagUnknown(buffer.tag))
    if (buffer.highest === 0n) return
    const [oldest] = this.#gone.keys()
    if (this.#gone.size >= maxGoneTags && oldest !== undefined) this.#gone.delete(oldest)
    this.#gone.set(buffer.tag, buffer.highest)
  }

  #begin({ tag, step }: TagRow, store: SegmentStore): void {
    this.#buffers.set(tag, new SegmentBuffer(tag, step, store, this.#bufferOptions, this.#gone.get(tag)))
    this.#gone.delete(tag)
  }

  #know(row: TagRow, store: SegmentStore): void {
    const buffer = this.#buffers.get(row.tag)
    if (buffer?.store === store) buffer.tableStep = row.step
    else if (buffer === undefined) this.#begin(row, store)
    else if (
      this.#stores.some((state) => state.store === buffer.store && state.rows.some(({ tag }) => tag === row.tag))
    ) {
      // Served from a later database because the earlier one was down: it stays there.
      this.#tellDouble(row.tag, store)
    } else {
      this.#end(buffer)
      this.#begin(row, store)
    }
  }

  #tellDouble(tag: string, store: SegmentStore): void {
    if (this.#doubles.has(tag)) return
    this.#doubles.add(tag)
    const served = this.#buffers.get(tag)?.store.name
    const message = `the tag "${tag}" is in ${served} and in ${store.name}: ids will repeat; remove one of the rows`
    this.#onAlarm({ code: 'FB_IDS_TAG_EXISTS', message })
  }

  async #read(state: StoreState): Promise<void> {
    try {
      // If we may not create tables, or another process creates it at the same time, it may exist anyway.
      const prepared = state.isKnown ? undefined : await state.store.prepare().catch((error: unknown) => ({ error }))
      state.rows = await state.store.rows().catch((error: unknown) => {
        throw prepared?.error ?? error
      })
      state.isKnown = true
      state.error = undefined
    } catch (error) {
      if (state.error === undefined) {
        const message = `the tags of ${state.store.name} cannot be read (${messageOf(error)})`
        this.#onAlarm({ code: 'FB_IDS_DATABASE_DOWN', message })
      }
      state.error = messageOf(error)
    }
  }
}
