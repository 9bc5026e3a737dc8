import type { HistorySettings, HistorySettingsView, Runtime } from '@firebreak/core'
import type { HubLogger } from '../hub-options.ts'
import type { HubStore } from '../store/hub-store.ts'
import type { Journal } from '../store/journal.ts'
import { DownSampler } from './down-sampler.ts'
import { EventQuota, eventBytesPerDay } from './event-quota.ts'
import { HeatSampler, type HeatSamplerOptions } from './heat-sampler.ts'
import { blockSteps, decodeBlock, encodeBlock, type HistoryBlock, type StepMs, stepLengths } from './history-block.ts'

export interface HeatHistoryOptions extends HeatSamplerOptions {
  readonly store: HubStore
  readonly journal: Journal
  readonly runtime: Runtime
  readonly logger: HubLogger
  readonly hubId: string
  /** What is kept unless a user changes it. */
  readonly settings: HistorySettings
}

const dayMs = 86_400_000
/** How the bytes of a day are divided: points of a second are many and short-lived. */
const shares: Readonly<Record<StepMs, number>> = { 1000: 0.6, 10000: 0.25, 60000: 0.15 }
const trimEveryMs = 60_000
const recordKind = 'history'
const firstHandled = { kinds: ['handled'], limit: 1 } as const
/** Maximum number of blocks kept visible while the store is unreachable. */
const maxUnsaved = 500
/** While reading, the event loop gets a turn this often. */
const turnMs = 8

/** What is kept by default: about 100 MB at most, see `maxKeptBytes`. */
export const historyDefaults: HistorySettings = {
  maxBytesPerDay: 64 * 1024 * 1024,
  keepMs: { second: 3_600_000, tenSeconds: dayMs, minute: 8 * dayMs },
}

/**
 * The past: what was hot, second by second and then more coarsely, in the hub's store. Nothing here is on the path of a
 * report: once a second the hottest keys are recorded, every ten seconds a block is written.
 *
 * Each start of a hub writes under its own name, in its own blocks: readers add up the blocks of all writers, so that
 * neither several hubs nor a restart count anything twice or overwrite each other.
 */
export class HeatHistory {
  readonly #options: HeatHistoryOptions
  readonly #writer: string
  readonly #sampler: DownSampler = new DownSampler()
  readonly #heat: HeatSampler
  readonly #events = new EventQuota(() => eventBytesPerDay(this.#settings.maxBytesPerDay))
  #settings: HistorySettings
  #trimmedAt = 0
  /** Bytes of finished blocks since `countedFrom`. */
  #writtenBytes = 0
  #countedFrom: number | undefined
  #lostBlocks = 0
  #wasHandled = false
  /** Blocks being written to the store, up to a bound. */
  readonly #unsaved = new Map<string, HistoryBlock>()

  constructor(options: HeatHistoryOptions) {
    this.#options = options
    this.#settings = options.settings
    this.#writer = `${options.hubId}/${options.runtime.newId().slice(0, 8)}`
    this.#heat = new HeatSampler(this.#sampler, options)
    options.journal.keeps = (event) => {
      if (event.kind === 'handled') this.#noteHandled(event.at)
      return this.#events.keeps(event)
    }
  }

  get settings(): HistorySettings {
    return this.#settings
  }

  /** Whether a strategy was ever carried out for this store, even if that is longer ago than anything kept. */
  get wasHandled(): boolean {
    return this.#wasHandled
  }

  /** Blocks that were not written because even their sums took more than the day allows. */
  get lostBlocks(): number {
    return this.#lostBlocks
  }

  /**
   * Loads the users' settings; while the store is unreachable the defaults apply, and loading is retried each minute.
   */
  async load(): Promise<void> {
    const records = await this.#options.store.records(recordKind)
    const kept = records.get('settings')
    const isHandled = records.has('handled') || (await this.#options.store.history(firstHandled)).length > 0
    this.#wasHandled ||= isHandled
    this.#settings = kept === undefined ? this.#options.settings : (JSON.parse(kept) as HistorySettings)
  }

  async saveSettings(settings: HistorySettings): Promise<void> {
    await this.#options.store.saveRecord(recordKind, 'settings', JSON.stringify(settings))
    this.#settings = settings
    this.#trimmedAt = 0
  }

  async view(): Promise<HistorySettingsView> {
    const now = this.#options.runtime.clock.now()
    const { store } = this.#options
    const [kept, events, sample] = await Promise.all([
      store.keptBlocks(),
      store.keptHistory(),
      store.history({ limit: 100 }),
    ])
    const countedMs = now - (this.#countedFrom ?? now)
    const isCounted = countedMs >= 60_000
    const perDay = (bytes: number) => (isCounted ? Math.round((bytes * dayMs) / countedMs) : null)
    const eventBytes = sample.reduce((sum, event) => sum + JSON.stringify(event).length, 0) / Math.max(1, sample.length)
    return {
      ...this.#settings,
      cost: {
        keptBytes: kept.reduce((sum, { bytes }) => sum + bytes, 0),
        bytesPerDay: perDay(this.#writtenBytes),
        maxKeptBytes: maxKeptBytes(this.#settings),
        decisions: {
          kept: events.events,
          from: events.from,
          keptBytes: Math.round(events.events * eventBytes),
          bytesPerDay: perDay(this.#events.keptBytes),
          maxBytesPerDay: eventBytesPerDay(this.#settings.maxBytesPerDay),
        },
      },
    }
  }

  /** Called once a second. */
  tick(now: number): void {
    this.#countedFrom ??= now
    this.#heat.sample(now)
    for (const block of this.#sampler.due(now)) this.#write(block, now)
    const leftOut = this.#events.told(now)
    if (leftOut !== undefined) this.#options.journal.record(leftOut)
    if (now - this.#trimmedAt < trimEveryMs) return
    this.#trimmedAt = now
    this.#options.journal.writeLast('trim', async (store) => {
      await store.trimHistory(now - this.#settings.keepMs.minute)
      for (const stepMs of stepLengths)
        await store.trimBlocks(stepMs, now - keepMsOf(this.#settings, stepMs) - stepMs * blockSteps)
    })
  }

  /** Writes everything not written yet. */
  close(): void {
    const now = this.#options.runtime.clock.now()
    for (const block of this.#sampler.rest()) this.#write(block, now)
  }

  /** The start of what is kept at each length of points. */
  async recordedFrom(): Promise<ReadonlyMap<number, number>> {
    const from = new Map((await this.#options.store.keptBlocks()).map((kept) => [kept.stepMs, kept.from]))
    for (const stepMs of stepLengths) {
      for (const { at } of this.#own(stepMs)) from.set(stepMs, Math.min(at, from.get(stepMs) ?? at))
    }
    return from
  }

  /** The blocks of a period, of all hubs, oldest first; open blocks as they are now. */
  async *blocks(stepMs: StepMs, from: number, to: number): AsyncGenerator<HistoryBlock> {
    const { store, runtime, logger } = this.#options
    const length = stepMs * blockSteps
    const start = Math.floor(from / length) * length
    const own = this.#own(stepMs).filter(({ at }) => at >= start && at < to)
    let turnEnd = runtime.clock.now() + turnMs
    for (const { at, writer, data } of await store.blocks(stepMs, start, to)) {
      if (writer === this.#writer && own.some((block) => block.at === at)) continue
      try {
        yield decodeBlock(stepMs, at, data)
      } catch (error) {
        logger.warn({ at, stepMs, error: (error as Error).message }, 'a block of the history cannot be read')
      }
      if (runtime.clock.now() < turnEnd) continue
      await new Promise<void>((resolve) => runtime.timers.setImmediate(resolve))
      turnEnd = runtime.clock.now() + turnMs
    }
    yield* own
  }

  #noteHandled(at: number): void {
    if (this.#wasHandled) return
    this.#wasHandled = true
    this.#options.journal.writeLast('handled', (store) => store.saveRecord(recordKind, 'handled', String(at)))
  }

  #write(block: HistoryBlock, now: number): void {
    const { stepMs, at } = block
    const data = encodeBlock(block, maxBlockBytes(this.#settings, stepMs))
    if (data === undefined) {
      this.#lostBlocks++
      return
    }
    if (now >= at + stepMs * blockSteps) this.#writtenBytes += data.length
    const id = `${stepMs} ${at}`
    this.#unsaved.delete(id)
    this.#unsaved.set(id, block)
    if (this.#unsaved.size > maxUnsaved) this.#unsaved.delete(this.#unsaved.keys().next().value!)
    this.#options.journal.saveBlock(id, async (store) => {
      await store.saveBlock({ stepMs, at, writer: this.#writer, data })
      if (this.#unsaved.get(id) === block) this.#unsaved.delete(id)
    })
  }

  /** Blocks that are still open, or not in the store yet. */
  #own(stepMs: StepMs): HistoryBlock[] {
    const open = this.#sampler.open(stepMs)
    const unsaved = [...this.#unsaved.values()].filter(
      (block) => block.stepMs === stepMs && !open.some(({ at }) => at === block.at),
    )
    return [...unsaved, ...open]
  }
}

/** The maximum bytes of a block, so that all blocks of a day stay within their bound. */
export function maxBlockBytes({ maxBytesPerDay }: HistorySettings, stepMs: StepMs): number {
  return Math.floor((maxBytesPerDay * shares[stepMs] * stepMs * blockSteps) / dayMs)
}

export function keepMsOf({ keepMs }: HistorySettings, stepMs: StepMs): number {
  return stepMs === 1000 ? keepMs.second : stepMs === 10_000 ? keepMs.tenSeconds : keepMs.minute
}

/** The most that one hub can have in the store, including a block due for deletion. */
export function maxKeptBytes(settings: HistorySettings): number {
  return stepLengths.reduce((sum, stepMs) => {
    const blocks = Math.ceil((keepMsOf(settings, stepMs) + trimEveryMs) / (stepMs * blockSteps)) + 2
    return sum + blocks * maxBlockBytes(settings, stepMs)
  }, 0)
}
