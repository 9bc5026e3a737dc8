import type { Clock, TimerHandle, Timers } from '@firebreak/core'

/** A call that was admitted and leaves later. */
interface PacedCall {
  readonly run: Run
  readonly cost: number
  before: PacedCall | undefined
  after: PacedCall | undefined
  leave(): void
}

/** Calls that leave one after another without a gap: each one's time follows from the start of the run. */
interface Run {
  /** When its first call leaves, minus the time that its units take. */
  startsAt: number
  /** The cost of all its calls. */
  units: number
  head: PacedCall | undefined
  tail: PacedCall | undefined
  next: Run | undefined
}

/** The runs of one key in the order in which they leave, and the timer of the first call. */
interface Queue {
  first: Run
  last: Run
  timer: TimerHandle | undefined
}

/** What paced calls need from their limiter. */
export interface PacedOptions {
  readonly clock: Clock
  readonly timers: Timers
  /** The interval between units. */
  readonly intervalMs: number
}

/** Clocks read at different moments agree within this. */
const toleranceMs = 2

/**
 * Calls of one limit that were admitted with a delay, for each key in the order in which they leave.
 *
 * An aborted call gives up its place: those that follow it without a gap move up, so the place that becomes free is the
 * last of theirs. Its units may only be returned if that is also the last of the limit: otherwise the next call would
 * get the place of another call (in another process, or of a plain `take`), and two would go at once.
 *
 * Only the first call of a key has a timer, and the others' times follow from it, so giving up a place costs the same
 * however many follow.
 */
export class PacedCalls {
  readonly #options: PacedOptions
  readonly #queues = new Map<string, Queue>()

  constructor(options: PacedOptions) {
    this.#options = options
  }

  /**
   * Releases a call after its delay; the returned function removes it earlier and returns when the freed place ends.
   */
  add(key: string, cost: number, delayMs: number, leave: () => void): () => number | undefined {
    const { clock, intervalMs } = this.#options
    const startsAt = clock.now() + delayMs - cost * intervalMs
    let queue = this.#queues.get(key)
    if (queue === undefined) {
      const run = newRun(startsAt)
      queue = { first: run, last: run, timer: undefined }
      this.#queues.set(key, queue)
    } else if (Math.abs(queue.last.startsAt + queue.last.units * intervalMs - startsAt) > toleranceMs) {
      queue.last.next = newRun(startsAt)
      queue.last = queue.last.next
    }
    const run = queue.last
    const call: PacedCall = { run, cost, before: run.tail, after: undefined, leave }
    if (run.tail === undefined) run.head = call
    else run.tail.after = call
    run.tail = call
    run.units += cost
    if (queue.timer === undefined) this.#time(key, queue)
    return () => this.#giveUp(key, call)
  }

  /** True if a place that ends then is the last of a limit that is unused again in `resetMs`. */
  isLast(endsAt: number, resetMs: number): boolean {
    return Math.abs(endsAt - this.#options.clock.now() - resetMs) <= toleranceMs
  }

  /** Sets the timer for the first call, or forgets a key that has none. */
  #time(key: string, queue: Queue): void {
    const { clock, timers, intervalMs } = this.#options
    queue.timer?.cancel()
    while (queue.first.head === undefined && queue.first.next !== undefined) queue.first = queue.first.next
    const { head, startsAt } = queue.first
    if (head === undefined) {
      this.#queues.delete(key)
      return
    }
    const leavesAt = startsAt + head.cost * intervalMs
    queue.timer = timers.setTimeout(
      () => {
        head.run.startsAt = leavesAt
        unlink(head)
        this.#time(key, queue)
        head.leave()
      },
      Math.max(0, leavesAt - clock.now()),
    )
  }

  #giveUp(key: string, call: PacedCall): number | undefined {
    const { intervalMs } = this.#options
    const queue = this.#queues.get(key)
    if (queue === undefined || !isLinked(call)) return undefined
    const { run } = call
    const endsAt = run.startsAt + (run.units + 1) * intervalMs
    const isFirst = queue.first === run && run.head === call
    unlink(call)
    if (isFirst) this.#time(key, queue)
    return queue.last === run || !this.#queues.has(key) ? endsAt : undefined
  }
}

function newRun(startsAt: number): Run {
  return { startsAt, units: 0, head: undefined, tail: undefined, next: undefined }
}

function isLinked(call: PacedCall): boolean {
  return call.run.head === call || call.before !== undefined
}

function unlink(call: PacedCall): void {
  const { run, before, after } = call
  if (before === undefined) run.head = after
  else before.after = after
  if (after === undefined) run.tail = before
  else after.before = before
  call.before = undefined
  call.after = undefined
  run.units -= call.cost
}
