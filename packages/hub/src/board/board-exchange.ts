import type { Runtime, TimerHandle } from '@firebreak/core'
import type { BoardNews, BoardSync, BoardTotals, HeatBoard, PostSettings } from './heat-board.ts'
import type { PendingPost } from './post-queue.ts'
import type { SharedDecider } from './shared-decider.ts'

export interface BoardExchangeOptions {
  readonly board: HeatBoard
  readonly decider: SharedDecider
  readonly settings: PostSettings
  readonly runtime: Runtime
  /** Reports received within this time are posted together. */
  readonly tickMs: number
  readonly totals: (now: number) => BoardTotals
  /** Gets the hubs, the rules and the switch, first of all in a turn. */
  readonly onSync: (sync: BoardSync) => Promise<void>
  /** Decisions were carried out. */
  readonly onDecided: () => void
  /** Called after each turn; undefined: all went well. */
  readonly onTrouble: (error: Error | undefined) => void
}

/** This hub's position in a bucket's outbox. */
interface Bucket {
  last: string
  sequence: number
  /** Its table must be loaded before anything else. */
  mustLoad: boolean
  /** The board may have lost decisions: a key missing there is not necessarily cold. */
  mayHaveLost: boolean
}

/** A script that takes more at once would delay everyone else. */
const maxPostsPerCall = 200
/** How many times outboxes are read in a tick. */
const pollsPerTick = 2

/**
 * One hub's traffic with the board: in each turn it reports that it is alive, posts what its decider has to share, and
 * reads the decisions. Turns never overlap, so decisions are carried out in the order of their outbox. A bucket that
 * fails is loaded whole before it is used again.
 */
export class BoardExchange {
  readonly #options: BoardExchangeOptions
  readonly #buckets: readonly Bucket[]
  #timer: TimerHandle | undefined
  #turn: Promise<void> | undefined
  #isUrged = false
  #isClosed = false
  #syncedAt = Number.NEGATIVE_INFINITY
  #hasSynced = false
  #bestRoundTripMs = Number.POSITIVE_INFINITY
  #boardTime = 0

  constructor(options: BoardExchangeOptions) {
    this.#options = options
    this.#buckets = Array.from({ length: options.board.bucketCount }, () => ({
      last: '0-0',
      sequence: 0,
      mustLoad: true,
      mayHaveLost: false,
    }))
  }

  /** Loads the table. */
  async open(): Promise<void> {
    await this.#run()
  }

  start(): void {
    const { runtime, tickMs } = this.#options
    this.#timer = runtime.timers.setInterval(() => this.#wake(), tickMs / pollsPerTick)
  }

  /** Requests a turn as soon as possible. */
  urge(): void {
    if (this.#isUrged) return
    this.#isUrged = true
    this.#options.runtime.timers.setImmediate(() => this.#wake())
  }

  /** Resolves once no turn is in progress or requested. */
  async settled(): Promise<void> {
    while (this.#turn !== undefined || (this.#isUrged && !this.#isClosed)) {
      this.#wake()
      await this.#turn
    }
  }

  /** The store lost everything, or was recreated. */
  distrust(): void {
    for (const bucket of this.#buckets) {
      bucket.mustLoad = true
      bucket.mayHaveLost = true
    }
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    await this.#turn
  }

  #wake(): void {
    if (this.#turn !== undefined || this.#isClosed) return
    this.#turn = this.#run().finally(() => {
      this.#turn = undefined
      if (this.#isUrged) this.#options.runtime.timers.setImmediate(() => this.#wake())
    })
  }

  async #run(): Promise<void> {
    const { runtime, tickMs, decider, onTrouble, onDecided } = this.#options
    const now = runtime.clock.now()
    const isTick = now - this.#syncedAt >= tickMs
    const isUrged = this.#isUrged
    this.#isUrged = false
    const failures: unknown[] = []
    if (isTick) {
      this.#syncedAt = now
      await this.#sync().catch((error: unknown) => {
        failures.push(error)
        // At once: the buckets of a frozen store would take another timeout to fail.
        onTrouble(error as Error)
      })
    }
    // Without its rules, everything on the board would look as if no rule applied to it.
    if (!this.#hasSynced) {
      this.#syncedAt = Number.NEGATIVE_INFINITY
      for (const [index, bucket] of this.#buckets.entries()) this.#lose(bucket, index)
      return
    }
    const posts = isTick || isUrged ? decider.takePosts(now) : new Map<number, PendingPost[]>()
    await Promise.all(
      this.#buckets.map((bucket, index) =>
        this.#visit(bucket, index, posts.get(index) ?? []).catch((error: unknown) => {
          failures.push(error)
          this.#lose(bucket, index)
        }),
      ),
    )
    // The next successful turn starts with the common part: the store may be a different one.
    if (failures.length > 0) this.#syncedAt = Number.NEGATIVE_INFINITY
    onDecided()
    onTrouble(failures[0] as Error | undefined)
  }

  #lose(bucket: Bucket, index: number): void {
    bucket.mustLoad = true
    bucket.mayHaveLost = true
    this.#options.decider.setAway(index, true)
  }

  async #sync(): Promise<void> {
    const { board, settings, runtime, totals, decider, onSync } = this.#options
    const { clock } = runtime
    const sentAt = clock.now()
    const sync = await board.sync(settings.hubId, totals(sentAt))
    const roundTripMs = clock.now() - sentAt
    // Its clock was set back: the timers of hot keys are far in the future.
    if (sync.boardTime < this.#boardTime) decider.recheck()
    this.#boardTime = sync.boardTime
    // The fastest answer gives the best estimate of the store's clock; a slow one only counts if there is none better.
    if (roundTripMs <= this.#bestRoundTripMs * 1.5) {
      this.#bestRoundTripMs = Math.min(this.#bestRoundTripMs, roundTripMs)
      decider.setClockOffset(sentAt + roundTripMs / 2 - sync.boardTime)
    }
    await onSync(sync)
    this.#hasSynced = true
  }

  async #visit(bucket: Bucket, index: number, posts: readonly PendingPost[]): Promise<void> {
    const { board, decider } = this.#options
    if (bucket.mustLoad) {
      decider.notPosted(posts)
      await this.#load(bucket, index)
      return
    }
    await this.#post(index, posts)
    for (;;) {
      const news = await board.poll(index, bucket.last)
      decider.due(news.due)
      if (!this.#carryOut(bucket, news)) bucket.mustLoad = true
      // Read to the end: one answer may not hold everything.
      if (bucket.mustLoad || news.decisions.length === 0) return
    }
  }

  async #load(bucket: Bucket, index: number): Promise<void> {
    const { board, decider } = this.#options
    const table = await board.load(index)
    decider.reconcile(index, table, !bucket.mayHaveLost)
    decider.setAway(index, false)
    bucket.last = table.last
    bucket.sequence = table.sequence
    bucket.mustLoad = false
    bucket.mayHaveLost = false
    this.urge()
  }

  async #post(index: number, posts: readonly PendingPost[]): Promise<void> {
    const { board, decider, settings, runtime } = this.#options
    for (let start = 0; start < posts.length; start += maxPostsPerCall) {
      const some = posts.slice(start, start + maxPostsPerCall)
      try {
        const answer = await board.post(
          index,
          settings,
          some.map(({ post }) => post),
        )
        decider.posted(some, answer, runtime.clock.now())
      } catch (error) {
        decider.notPosted(posts.slice(start))
        throw error
      }
    }
  }

  /** False if a decision is missing, or its rule is not known here yet. */
  #carryOut(bucket: Bucket, { decisions, sequences, last }: BoardNews): boolean {
    const { decider } = this.#options
    for (const [index, decision] of decisions.entries()) {
      const sequence = sequences[index]!
      if (sequence !== bucket.sequence + 1) {
        bucket.mayHaveLost = sequence <= bucket.sequence
        return false
      }
      if (!decider.apply(decision)) return false
      bucket.sequence = sequence
    }
    bucket.last = last
    return true
  }
}
