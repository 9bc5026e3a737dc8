import type { Clock, Timers } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { KeyCounts } from '../heat/counted-clusters.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { NearKeys } from '../heat/near-keys.ts'
import { IngestThreads } from './ingest-threads.ts'
import type { ReportBatch } from './report-batch.ts'
import type { ThreadAnswer, ThreadOrder } from './thread-messages.ts'

export interface ThreadedCountsOptions {
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
  readonly nearKeys: NearKeys
  readonly timers: Timers
  readonly clock: Clock
  readonly onAnswer: (shard: number, answer: ThreadAnswer) => void
  readonly onLost: (shard: number, error: Error) => void
}

/** The keys, counted by threads. Threads are told which of them are near, and a new thread is told again. */
export class ThreadedCounts implements KeyCounts<NearKey> {
  readonly #options: ThreadedCountsOptions
  readonly #counts: (Counts | undefined)[] = []
  #threads: IngestThreads | undefined
  #nearKeys: NearKeys | undefined
  #clock: Clock | undefined
  #rules: readonly Rule[] = []
  #hubCount = 1
  /** Keys by cluster that may be near in the threads but are not here. */
  readonly #nearNoMore = new Map<string, Set<string>>()
  /** The last batch whose rows were, or are being, processed. */
  #appliedBatch = 0
  #isApplying = false

  constructor(options: ThreadedCountsOptions) {
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
  start({ nearKeys, timers, clock, onAnswer, onLost }: Listener): void {
    this.#nearKeys = nearKeys
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

  /** Processes the rows of a batch: the threads treat its keys as near by themselves. */
  apply({ number }: ReportBatch, take: () => void): void {
    this.#appliedBatch = number
    this.#isApplying = true
    try {
      take()
    } finally {
      this.#isApplying = false
    }
  }

  /** Sends a batch to all threads; returns which of them will answer. */
  send(batch: ReportBatch): Set<number> {
    const { number, block } = batch
    const nearNoMore = new Map([...this.#nearNoMore].map(([redisClusterId, ids]) => [redisClusterId, [...ids]]))
    this.#nearNoMore.clear()
    const { nearRate } = this.#nearKeys!
    const applied = this.#appliedBatch
    return this.#post({ kind: 'batch', number, block, reports: batch.ranges(), nearRate, nearNoMore, applied })
  }

  addNear(redisClusterId: string, id: string, _near: NearKey, now: number): void {
    this.#nearNoMore.get(redisClusterId)?.delete(id)
    // While rows are processed, the threads treat their keys as near by themselves.
    if (!this.#isApplying) this.#post({ kind: 'near', keys: [{ redisClusterId, id }], now })
  }

  removeNear(redisClusterId: string, id: string): void {
    const ids = this.#nearNoMore.get(redisClusterId)
    if (ids === undefined) this.#nearNoMore.set(redisClusterId, new Set([id]))
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

  /** What a new thread must know. */
  #teach(shard: number): void {
    if (this.#threads === undefined) return
    this.#threads.post(shard, this.#rulesOrder())
    const keys = [...this.#nearKeys!.all()].map(({ redisClusterId, id }) => ({ redisClusterId, id }))
    this.#threads.post(shard, { kind: 'near', keys, now: this.#clock!.now() })
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
