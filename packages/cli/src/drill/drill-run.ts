import { FirebreakError, type HistoryEvent, keyText } from '@firebreak/core'
import { Cluster, type Redis } from 'ioredis'
import type { HubApi } from '../hub-api/hub-api.ts'
import { type AcknowledgedWrite, crossingAt, highestAlone, judgeWrites, type Spread, spread } from './drill-figures.ts'
import type { DrillFleet } from './drill-fleet.ts'
import { machineTime } from './drill-messages.ts'

/** The results of a drill. Milliseconds from the moment the threshold was crossed. */
export interface DrillResult {
  readonly rounds: number
  readonly clients: number
  readonly threshold: number
  readonly redis: string
  readonly detectedMs: Spread
  readonly deliveredMs: Spread
  readonly effectiveMs: Spread
  /** Fraction of the key's reads that Redis still answered once the strategy was effective everywhere. */
  readonly redisShareAfter: number
  /** Redis' own count of GETs per second, before and after. */
  readonly redisGetsPerSecond: { readonly before: number; readonly after: number }
  readonly writeSeenMs: Spread
  /** The same with caching off. */
  readonly writeSeenControlMs: Spread
  /** Reads that began more than a lease after a newer write was acknowledged and still gave the old value. */
  readonly staleReads: number
  /** The most that a single client read in a window: below the threshold, or the drill proves nothing. */
  readonly highestAlone: number
  readonly clientErrors: number
}

/** The window of the drill's rule. */
export const windowMs = 1000
const leaseMs = 300
const coldPerSecond = 200
const steadyMs = 600
const writesPerRound = 10
const writeEveryMs = 100

/** The rounds of one drill and their results. */
export class DrillRun {
  readonly #threshold: number
  readonly #fleet: DrillFleet
  readonly #writer: Redis | Cluster
  readonly #api: HubApi
  readonly #detected: number[] = []
  readonly #delivered: number[] = []
  readonly #effective: number[] = []
  readonly #seen: number[] = []
  readonly #control: number[] = []
  #staleReads = 0
  #highestAlone = 0
  #errors = 0
  readonly #gets = { before: 0, beforeMs: 0, after: 0, afterMs: 0, readsAfter: 0 }

  constructor(threshold: number, fleet: DrillFleet, writer: Redis | Cluster, api: HubApi) {
    this.#threshold = threshold
    this.#fleet = fleet
    this.#writer = writer
    this.#api = api
  }

  /** Makes one new key hot, then writes to it; returns a line about the result. */
  async round(round: number): Promise<string> {
    const key = `drill:${process.pid}:${round}`
    await this.#writer.set(key, '1')
    const started = machineTime()
    const getsAtStart = await this.#getCalls()
    // 1.6 times the threshold in total; no client alone reaches it.
    const readsPerSecond = Math.floor((this.#threshold * 1.6) / this.#fleet.size)
    const both = Promise.all([this.#fleet.all('delivered'), this.#fleet.all('effective')])
    this.#fleet.order({ kind: 'drive', key, readsPerSecond, coldPerSecond: coldPerSecond / this.#fleet.size })
    const [deliveredAt, effectiveAt] = (await both).map((news) => Math.max(...news.map(({ at }) => at))) as [
      number,
      number,
    ]
    const getsAtEffect = await this.#getCalls()
    const steadyFrom = machineTime()
    await pause(steadyMs)
    const getsAtEnd = await this.#getCalls()
    const steadyTo = machineTime()
    const notes = await this.#fleet.notes()
    const crossed = crossingAt(notes, this.#threshold, windowMs)
    if (crossed === undefined) {
      throw new FirebreakError(
        'FB_DRILL',
        `round ${round}: the clients never reached the threshold; is the machine too busy?`,
      )
    }
    const detectedAt = await this.#detectedAt(key, started)
    this.#detected.push(detectedAt - crossed)
    this.#delivered.push(deliveredAt - crossed)
    this.#effective.push(effectiveAt - crossed)
    this.#highestAlone = Math.max(this.#highestAlone, highestAlone(notes, windowMs))
    this.#errors += notes.reduce((sum, { errors }) => sum + errors, 0)
    this.#gets.before += getsAtEffect - getsAtStart
    this.#gets.beforeMs += effectiveAt - started
    this.#gets.after += getsAtEnd - getsAtEffect
    this.#gets.afterMs += steadyTo - steadyFrom
    const reads = notes.flatMap(({ readsAt }) => readsAt)
    this.#gets.readsAfter += reads.filter((at) => at >= steadyFrom && at <= steadyTo).length
    const { seenMs, staleReads } = await this.#writes(key)
    this.#seen.push(...seenMs)
    this.#staleReads += staleReads
    const ms = (value: number) => `${Math.round(value)} ms`
    const steps = `detected ${ms(detectedAt - crossed)}, delivered ${ms(deliveredAt - crossed)}, effective ${ms(effectiveAt - crossed)}`
    return `round ${round}: ${steps}; writes seen after ${spread(seenMs).p50} ms, stale reads ${staleReads}`
  }

  /** The same writes and reads with every shield switched to pass-through. */
  async control(rounds: number): Promise<void> {
    await this.#api.call('POST', '/v1/switch', { isOff: true })
    try {
      const key = `drill:${process.pid}:control`
      await this.#writer.set(key, '1')
      await pause(1000)
      for (let round = 0; round < rounds; round++) this.#control.push(...(await this.#writes(key)).seenMs)
    } finally {
      // Others may use the hub: whatever happens here, protection is switched back on.
      await this.#api.call('POST', '/v1/switch', { isOff: false })
    }
  }

  result(redis: string): DrillResult {
    const { before, beforeMs, after, afterMs, readsAfter } = this.#gets
    const perSecond = (count: number, ms: number) => Math.round((count / ms) * 1000)
    return {
      rounds: this.#effective.length,
      clients: this.#fleet.size,
      threshold: this.#threshold,
      redis,
      detectedMs: spread(this.#detected),
      deliveredMs: spread(this.#delivered),
      effectiveMs: spread(this.#effective),
      redisShareAfter: Number((after / Math.max(1, readsAfter)).toFixed(5)),
      redisGetsPerSecond: { before: perSecond(before, beforeMs), after: perSecond(after, afterMs) },
      writeSeenMs: spread(this.#seen),
      writeSeenControlMs: spread(this.#control),
      staleReads: this.#staleReads,
      highestAlone: this.#highestAlone,
      clientErrors: this.#errors,
    }
  }

  /** A plain client writes new versions; every client reads all the time. */
  async #writes(key: string): Promise<{ seenMs: number[]; staleReads: number }> {
    this.#fleet.order({ kind: 'watch', key })
    const writes: AcknowledgedWrite[] = []
    const first = Number(await this.#writer.get(key)) + 1
    for (let index = 0; index < writesPerRound; index++) {
      await pause(writeEveryMs)
      await this.#writer.set(key, String(first + index))
      writes.push({ version: first + index, acknowledgedAt: machineTime() })
    }
    // One more lease, so that a value served forever would show.
    await pause(leaseMs + writeEveryMs)
    const notes = await this.#fleet.notes()
    this.#errors += notes.reduce((sum, { errors }) => sum + errors, 0)
    return judgeWrites(notes, writes, leaseMs)
  }

  /** When the hub decided, according to its history. */
  async #detectedAt(key: string, since: number): Promise<number> {
    const path = `/v1/history?since=${Math.floor(since)}&limit=500`
    const { events } = await this.#api.call<{ events: HistoryEvent[] }>('GET', path)
    return events.find((event) => event.kind === 'hot' && event.key === keyText(key))?.at ?? Number.NaN
  }

  /** Redis' own count of GET, of a cluster summed over its masters. */
  async #getCalls(): Promise<number> {
    const servers = this.#writer instanceof Cluster ? this.#writer.nodes('master') : [this.#writer]
    const stats = await Promise.all(servers.map((server) => server.info('commandstats')))
    return stats.reduce((sum, text) => sum + Number(text.match(/cmdstat_get:calls=(\d+)/)?.[1] ?? 0), 0)
  }
}

function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms))
}
