import type { Timers } from '@firebreak/core'
import type { RuleSet } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { type AdmittedReport, type IntakeRooms, NearIntake, type ReportIntake } from '../collect/report-intake.ts'
import { emptyRow, latin1 } from '../heat/counted-keys.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { DueClock } from './due-clock.ts'
import { eachRow } from './each-row.ts'
import { blockBytes, ReportBatch } from './report-batch.ts'
import { slotFields, type ThreadAnswer } from './thread-messages.ts'
import type { ThreadedCounts } from './threaded-counts.ts'

export interface ThreadedIntakeRooms extends Omit<IntakeRooms, 'clock'> {
  readonly clock: DueClock
  readonly alarms: AlarmBoard
  readonly timers: Timers
  readonly counts: ThreadedCounts
  readonly maxBacklogBytes: number
}

/** A turn: a batch of reports, or some work of the hub. */
type Turn =
  | { readonly kind: 'batch'; readonly batch: ReportBatch }
  | { readonly kind: 'run'; readonly at: number; readonly isBarrier: boolean; readonly run: () => void }

const maxSpareBlocks = 8
/** Batches in the threads at a time: enough to keep them busy, few enough that their knowledge is not stale. */
const maxSentBatches = 4
/** How long the alarm about a lost thread stays visible. */
const lostShownMs = 60_000

/**
 * Reports with the help of threads, and **the same decisions as without**.
 *
 * The main thread accepts reports, the threads count them (each its share of the keys, by hash), and the rows of near
 * keys come back to the main thread, which decides. Everything takes its turn: batches of reports, ticks, sweeps,
 * changes of rules and claims wait in one line. A batch's turn comes when all threads have answered it; its rows are
 * processed in the order of the entries in the reports, at the reports' own times. Whatever changes what the threads
 * depend on is a *barrier*: batches behind it are sent once it has run. So threads affect when something is decided, by
 * a millisecond or two, but never what.
 */
export class ThreadedIntake implements ReportIntake {
  readonly #rooms: ThreadedIntakeRooms
  readonly #near: NearIntake
  readonly #turns: Turn[] = []
  readonly #batches = new Map<number, ReportBatch>()
  readonly #spareBlocks: SharedArrayBuffer[] = []
  readonly #lostAt = new Map<number, number>()
  readonly #row = emptyRow<NearKey>()
  #lastBatch = 0
  #backlogBytes = 0
  #isFlushDue = false
  #isDraining = false

  constructor(rooms: ThreadedIntakeRooms, rules: RuleSet) {
    this.#rooms = rooms
    this.#near = new NearIntake(rooms, rules)
    rooms.counts.start({
      onAnswer: (shard, answer) => this.#answered(shard, answer),
      onLost: (shard, error) => this.#lost(shard, error),
      nearKeys: rooms.engine,
      timers: rooms.timers,
      clock: rooms.clock,
    })
  }

  get counts(): ThreadedCounts {
    return this.#rooms.counts
  }

  get hasRoom(): boolean {
    return this.#backlogBytes < this.#rooms.maxBacklogBytes
  }

  setRules(rules: RuleSet): void {
    this.#near.rules = rules
  }

  take(report: AdmittedReport, bytes: Uint8Array, start: number): void {
    const length = bytes.length - start
    this.#backlogBytes += length
    this.#openBatch(length).add(report, bytes.subarray(start))
    if (this.#isFlushDue) return
    this.#isFlushDue = true
    // Everything received in one turn of the event loop goes together.
    this.#rooms.timers.setImmediate(() => {
      this.#isFlushDue = false
      this.#flush()
      // If no thread is left, nobody answers.
      this.#drain()
    })
  }

  inTurn(turn: (now: number) => void): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#enqueue(true, (now) => {
        try {
          resolve(turn(now))
        } catch (error) {
          reject(error as Error)
        }
      })
    })
  }

  inPassing(turn: (now: number) => void): void {
    this.#enqueue(false, turn)
  }

  load(): number {
    return this.#rooms.counts.threads.load()
  }

  close(): Promise<void> {
    return this.#rooms.counts.threads.close()
  }

  #enqueue(isBarrier: boolean, turn: (now: number) => void): void {
    const at = this.#rooms.clock.now()
    this.#turns.push({ kind: 'run', at, isBarrier, run: () => turn(at) })
    this.#flush()
    this.#drain()
  }

  #openBatch(length: number): ReportBatch {
    const last = this.#turns.at(-1)
    if (last?.kind === 'batch' && last.batch.waitingFor === undefined && last.batch.hasRoomFor(length))
      return last.batch
    const isUsual = length <= blockBytes
    const block = (isUsual && this.#spareBlocks.pop()) || new SharedArrayBuffer(Math.max(length, blockBytes))
    const batch = new ReportBatch(++this.#lastBatch, block)
    this.#batches.set(batch.number, batch)
    this.#turns.push({ kind: 'batch', batch })
    return batch
  }

  /** Sends the first batches, but none behind a barrier. */
  #flush(): void {
    let batches = 0
    for (const turn of this.#turns) {
      if (turn.kind === 'run') {
        if (turn.isBarrier) return
      } else {
        if (++batches > maxSentBatches) return
        turn.batch.waitingFor ??= this.#rooms.counts.send(turn.batch)
      }
    }
  }

  #answered(shard: number, answer: ThreadAnswer): void {
    const { slots } = this.#rooms
    for (const { redisClusterId, at, pairs } of answer.slotSums) {
      const counts = slots.counts(redisClusterId, at)
      if (counts === undefined) continue
      for (let nth = 0; nth < pairs.length; nth += 2) counts[pairs[nth]!]! += pairs[nth + 1]!
    }
    const batch = this.#batches.get(answer.number)
    if (batch === undefined) return
    batch.answers[shard] = answer
    batch.waitingFor!.delete(shard)
    this.#drain()
  }

  /** Runs all turns that are ready, in order. */
  #drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    try {
      for (let turn = this.#turns[0]; turn !== undefined; turn = this.#turns[0]) {
        if (turn.kind === 'batch') {
          if (turn.batch.waitingFor?.size !== 0) break
          this.#turns.shift()
          this.#apply(turn.batch)
          this.#flush()
        } else {
          const { at, run, isBarrier } = turn
          this.#turns.shift()
          this.#rooms.clock.at = at
          try {
            run()
          } finally {
            this.#rooms.clock.at = undefined
          }
          if (isBarrier) this.#flush()
        }
      }
    } finally {
      this.#isDraining = false
    }
  }

  #apply(batch: ReportBatch): void {
    this.#rooms.counts.apply(batch, () => {
      this.#takeSlots(batch)
      this.#takeRows(batch)
      this.#rooms.delivery.flush()
    })
    this.#batches.delete(batch.number)
    this.#backlogBytes -= batch.byteLength
    const isUsual = batch.block.byteLength === blockBytes
    if (isUsual && this.#spareBlocks.length < maxSpareBlocks) this.#spareBlocks.push(batch.block)
  }

  #takeSlots({ reports, answers }: ReportBatch): void {
    for (const answer of answers) {
      const slots = answer?.slots ?? []
      for (let at = 0; at < slots.length; at += slotFields) {
        const report = reports[slots[at]!]!
        const { redisClusterId } = report.sections[slots[at + 1]!]!
        this.#rooms.totals.addEntry(redisClusterId, slots[at + 2]!, report.at, slots[at + 3]!)
      }
    }
  }

  #takeRows(batch: ReportBatch): void {
    const { counts, clock, delivery } = this.#rooms
    let last: AdmittedReport | undefined
    eachRow(batch, this.#row, (report, redisClusterId, key, row) => {
      if (report !== last) {
        if (last !== undefined) delivery.flush()
        last = report
        clock.at = report.now
      }
      if (!this.#near.take(report, redisClusterId, key, row)) counts.removeNear(redisClusterId, latin1(key))
    })
    clock.at = undefined
  }

  #lost(shard: number, error: Error): void {
    const { alarms, clock, counts } = this.#rooms
    const now = clock.now()
    const cause =
      `ingest thread ${shard + 1} of ${counts.threads.count} ended: ${error.message}; ` +
      'counts of keys below half their threshold start over, and what it had not answered is lost'
    const retry = 'another thread takes its place; keys near their threshold or hot are in the main thread'
    alarms.raise({ id: `ingest-thread:${shard + 1}`, severity: 'critical', cause, retry })
    this.#lostAt.set(shard, now)
    for (const batch of this.#batches.values()) batch.waitingFor?.delete(shard)
    this.#drain()
  }

  watch(now: number): void {
    for (const [shard, lostAt] of this.#lostAt) {
      if (now - lostAt < lostShownMs) continue
      this.#lostAt.delete(shard)
      this.#rooms.alarms.clear(`ingest-thread:${shard + 1}`)
    }
  }
}
