import type { Clock, Rule, Timers } from '@firebreak/core'
import type { FarSide } from '../heat/far-tier.ts'
import type { NearKey, TieredHeatEngine } from '../heat/tiered-heat-engine.ts'
import { IngestThreads } from './ingest-threads.ts'
import type { ReportBatch } from './report-batch.ts'
import type { ThreadAnswer, ThreadOrder } from './thread-messages.ts'

export interface ThreadedFarSideOptions {
  readonly count: number
  readonly maxKeys: number
  readonly hashSeed: number
  /** Whether the rules in force need each entry's slot. */
  readonly wantsSlots: () => boolean
}

interface Counts {
  readonly size: number
  readonly memoryBytes: number
  readonly overflowCount: number
}

interface Listener {
  readonly engine: TieredHeatEngine
  readonly timers: Timers
  readonly clock: Clock
  readonly onAnswer: (shard: number, answer: ThreadAnswer) => void
  readonly onLost: (shard: number, error: Error) => void
}

/** The far keys, counted by threads; what the engine says of keys is passed on, and told again to a thread that is new. */
export class ThreadedFarSide implements FarSide<NearKey> {
  readonly #options: ThreadedFarSideOptions
  readonly #counts: (Counts | undefined)[] = []
  #threads: IngestThreads | undefined
  #engine: TieredHeatEngine | undefined
  #clock: Clock | undefined
  #rules: readonly Rule[] = []
  #hubCount = 1
  /** Keys by cluster that the threads may hold as near and the engine does not. */
  readonly #unlinks = new Map<string, Set<string>>()
  /** The last batch whose rows were taken, or are being taken. */
  #appliedBatch = 0
  #isApplying = false

  constructor(options: ThreadedFarSideOptions) {
    this.#options = options
  }

  get threads(): IngestThreads {
    return this.#threads!
  }

  get size(): number {
    return this.#sum('size')
  }

  get memoryBytes(): number {
    return this.#sum('memoryBytes')
  }

  get overflowCount(): number {
    return this.#sum('overflowCount')
  }

  /** Starts the threads. */
  start({ engine, timers, clock, onAnswer, onLost }: Listener): void {
    this.#engine = engine
    this.#clock = clock
    this.#threads = new IngestThreads({
      ...this.#options,
      timers,
      clock,
      onAnswer: (shard, answer) => {
        this.#counts[shard] = answer
        onAnswer(shard, answer)
      },
      onLost: (shard, error) => {
        this.#counts[shard] = undefined
        onLost(shard, error)
      },
      onStarted: (shard) => this.#teach(shard),
    })
    for (let shard = 0; shard < this.#options.count; shard++) this.#teach(shard)
  }

  /** Takes the rows of a batch: its keys have been linked by the threads themselves. */
  apply({ number }: ReportBatch, take: () => void): void {
    this.#appliedBatch = number
    this.#isApplying = true
    try {
      take()
    } finally {
      this.#isApplying = false
    }
  }

  /** Sends a batch to all threads; which of them will answer. */
  send(batch: ReportBatch): Set<number> {
    const { number, block } = batch
    const unlinks = new Map([...this.#unlinks].map(([redisClusterId, ids]) => [redisClusterId, [...ids]]))
    this.#unlinks.clear()
    const { candidateLine } = this.#engine!
    const applied = this.#appliedBatch
    return this.#post({ kind: 'batch', number, block, reports: batch.ranges(), candidateLine, unlinks, applied })
  }

  link(redisClusterId: string, id: string, _near: NearKey, now: number): void {
    this.#unlinks.get(redisClusterId)?.delete(id)
    // While rows are taken, the threads have linked their keys by themselves.
    if (!this.#isApplying) this.#post({ kind: 'link', links: [{ redisClusterId, id }], now })
  }

  unlink(redisClusterId: string, id: string): void {
    const ids = this.#unlinks.get(redisClusterId)
    if (ids === undefined) this.#unlinks.set(redisClusterId, new Set([id]))
    else ids.add(id)
  }

  setRules(rules: readonly Rule[], hubCount: number): void {
    this.#rules = rules
    this.#hubCount = hubCount
    this.#post(this.#rulesOrder())
  }

  sweep(now: number): void {
    this.#post({ kind: 'sweep', now })
  }

  /** What a thread that begins must know. */
  #teach(shard: number): void {
    if (this.#threads === undefined) return
    this.#threads.post(shard, this.#rulesOrder())
    const links = [...this.#engine!.near()].map(({ redisClusterId, id }) => ({ redisClusterId, id }))
    this.#threads.post(shard, { kind: 'link', links, now: this.#clock!.now() })
  }

  #rulesOrder(): ThreadOrder {
    return { kind: 'rules', rules: this.#rules, hubCount: this.#hubCount, wantsSlots: this.#options.wantsSlots() }
  }

  #post(order: ThreadOrder): Set<number> {
    const { count } = this.#options
    const reached = new Set<number>()
    for (let shard = 0; shard < count; shard++) if (this.#threads?.post(shard, order)) reached.add(shard)
    return reached
  }

  #sum(field: keyof Counts): number {
    return this.#counts.reduce((sum, counts) => sum + (counts?.[field] ?? 0), 0)
  }
}
