import { availableParallelism } from 'node:os'
import type { Runtime } from '@firebreak/core'
import type { RedisArgument, RedisScript } from '@firebreak/redis'
import type { Answer } from '../answer.ts'
import { AwakeLoop } from './awake-loop.ts'
import { admittedAnswer, deniedAnswer, type RedisPlan } from './redis-plan.ts'
import { evenTakeScript, scriptOf } from './scripts.ts'

/** Successive calls of one key and one cost. */
interface Run {
  readonly cost: number
  /** The name of a hold, if the algorithm names its calls. */
  readonly id: string
  readonly waiters: ((answer: Answer) => void)[]
}

/** The calls for one key since the last flush, in order. */
interface KeyCalls {
  readonly key: string
  readonly runs: Run[]
}

/** What a batcher needs from its limiter. */
export interface BatcherOptions {
  readonly plan: RedisPlan
  readonly runtime: Runtime
  /** How long to stay awake for a reply that many callers wait for, in milliseconds; 0: never. */
  readonly awakeMs: number
  /** False if each key needs its own call (a cluster: keys are on different nodes). */
  readonly sharesCalls: boolean
  /** The Redis keys for a limit's key. */
  redisKeys(key: string): readonly string[]
  /** Runs a script of takes: calls `done` with the reply without the time, or `failed` if there is none. */
  run(
    script: RedisScript,
    keys: readonly string[],
    args: readonly RedisArgument[],
    done: (reply: readonly number[]) => void,
    failed: () => void,
  ): void
  /**
   * Reports how many calls of a run Redis allowed and denied, and the answer for the denied ones, before the callers
   * get theirs; `sentAt` is the steady clock's time of the request.
   */
  answered(
    key: string,
    cost: number,
    admitted: number,
    denied: number,
    sentAt: number,
    denial: Answer | undefined,
  ): void
  /** The answer if the call failed. */
  fallback(key: string, cost: number, requestId: string): Answer
}

/** Script calls of one limiter in flight at a time; what arrives meanwhile forms the next batch. */
const maxInFlight = 8
/** From this many callers, those of one reply are woken in two halves. */
const minCrowd = 64
/** Keys in one script call; a script blocks the server for everyone else. */
const maxKeysPerCall = 50

/**
 * Combines calls of one turn into one script call.
 *
 * Calls are gathered until the running turn of the event loop has finished all its promise work, then sent together:
 * equal costs of one key as one number, in order of arrival, so that exactly the same calls are admitted as one by one.
 * While `maxInFlight` calls are in flight, later ones wait for a reply and form the next batch: this bounds what a
 * dying connection can hold. When a call fails, those waiting behind it fail too.
 *
 * On a hot key, the callers that get an answer ask again next. If all were answered at once, they would all ask at
 * once, and this process and Redis would wait for each other in turns. So if a reply has many callers and nothing else
 * is in flight, half of them are answered a turn later: from then on Redis decides for one half while this process
 * serves the other.
 */
export class TakeBatcher {
  readonly #options: BatcherOptions
  readonly #named: boolean
  readonly #evenScript: RedisScript
  readonly #script: RedisScript
  readonly #loop: AwakeLoop
  #pending: KeyCalls[] = []
  /** `#pending` by key, from the second key on: a single hot key needs no table. */
  #byKey: Map<string, KeyCalls> | undefined
  /** The run that was extended last: on a hot key the next call belongs to it too. */
  #lastKey: string | undefined
  #lastRun: Run | undefined
  #inFlight = 0
  #isScheduled = false

  constructor(options: BatcherOptions) {
    const { algorithm } = options.plan
    this.#options = options
    const { clock, timers } = options.runtime
    this.#loop = new AwakeLoop(options.awakeMs, {
      cores: availableParallelism(),
      clock,
      setImmediate: (callback) => timers.setImmediate(callback),
    })
    this.#named = algorithm === 'concurrency'
    this.#evenScript = evenTakeScript(algorithm)
    this.#script = scriptOf('take', [algorithm])
  }

  take(key: string, cost: number, requestId: string): Promise<Answer> {
    const run =
      this.#lastRun !== undefined && this.#lastKey === key && this.#lastRun.cost === cost && !this.#named
        ? this.#lastRun
        : this.#runFor(key, cost, requestId)
    return new Promise<Answer>((resolve) => {
      run.waiters.push(resolve)
    })
  }

  #runFor(key: string, cost: number, id: string): Run {
    const { runs } = this.#callsOf(key)
    let run = runs.at(-1)
    if (run === undefined || run.cost !== cost || this.#named) {
      run = { cost, id, waiters: [] }
      runs.push(run)
    }
    this.#lastKey = key
    this.#lastRun = run
    return run
  }

  #callsOf(key: string): KeyCalls {
    const first = this.#pending[0]
    if (first?.key === key) return first
    const known = this.#byKey?.get(key)
    if (known !== undefined) return known
    const calls: KeyCalls = { key, runs: [] }
    this.#pending.push(calls)
    if (first === undefined) {
      this.#schedule()
    } else {
      this.#byKey ??= new Map()
      this.#byKey.set(key, calls)
    }
    return calls
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= maxInFlight) return
    this.#isScheduled = true
    // A tick requested from a microtask runs after all microtasks: by then every caller of this turn has called.
    queueMicrotask(() => process.nextTick(this.#flush))
  }

  readonly #flush = (): void => {
    this.#isScheduled = false
    const pending = this.#takePending()
    const size = this.#options.sharesCalls ? maxKeysPerCall : 1
    for (let start = 0; start < pending.length; start += size) {
      this.#send(pending.length <= size ? pending : pending.slice(start, start + size))
    }
  }

  #takePending(): KeyCalls[] {
    const pending = this.#pending
    this.#pending = []
    // Replaced, not cleared: a cleared table points to its successor, and one in the old generation would keep
    // everything after it alive.
    this.#byKey = undefined
    this.#lastRun = undefined
    return pending
  }

  #send(batch: readonly KeyCalls[]): void {
    const { redisKeys, run } = this.#options
    const sameCost = this.#sameCost(batch)
    const keys: string[] = []
    for (const { key } of batch) keys.push(...redisKeys(key))
    const args = sameCost > 0 ? evenArguments(sameCost, batch) : this.#unevenArguments(batch)
    const isAwaited = callsOf(batch) >= minCrowd / 2
    const { clock } = this.#options.runtime
    const sentAt = clock.now()
    const landed = () => {
      this.#inFlight--
      if (isAwaited) this.#loop.answered(clock.now() - sentAt)
      if (this.#pending.length > 0) this.#schedule()
    }
    this.#inFlight++
    if (isAwaited) this.#loop.sent(sentAt)
    run(
      sameCost > 0 ? this.#evenScript : this.#script,
      keys,
      args,
      (reply) => {
        this.#answerAll(batch, sentAt, reply)
        landed()
      },
      () => {
        for (const calls of batch) this.#fail(calls)
        // They were queued while Redis was not answering: another deadline would only add to the wait.
        for (const calls of this.#takePending()) this.#fail(calls)
        landed()
      },
    )
  }

  #answerAll(batch: readonly KeyCalls[], sentAt: number, reply: readonly number[]): void {
    let position = 0
    for (const { key, runs } of batch) {
      for (const run of runs) {
        this.#answer(key, run, sentAt, reply, position)
        position += 4
      }
    }
  }

  /** The cost of all calls of a batch if it is the same and the calls have no names; otherwise 0. */
  #sameCost(batch: readonly KeyCalls[]): number {
    const { cost } = batch[0]!.runs[0]!
    const isSame = !this.#named && batch.every(({ runs }) => runs.length === 1 && runs[0]!.cost === cost)
    return isSame ? cost : 0
  }

  #unevenArguments(batch: readonly KeyCalls[]): RedisArgument[] {
    const args: RedisArgument[] = [0]
    for (const { runs } of batch) {
      args.push(runs.length)
      for (const { cost, id, waiters } of runs) {
        args.push(cost, waiters.length)
        if (this.#named) args.push(id)
      }
    }
    return args
  }

  #answer(key: string, { cost, waiters }: Run, sentAt: number, reply: readonly number[], position: number): void {
    const { plan } = this.#options
    const admitted = reply[position]!
    const level = reply[position + 1]!
    const resetMs = reply[position + 3]!
    const calls = waiters.length
    const denial = admitted < calls ? deniedAnswer(plan, cost, level, reply[position + 2]!, resetMs) : undefined
    this.#options.answered(key, cost, admitted, calls - admitted, sentAt, denial)
    const wake = (start: number, end: number) => {
      for (let index = start; index < end; index++) {
        const later = admitted - 1 - index
        waiters[index]!(later < 0 ? denial! : admittedAnswer(plan, cost, later, level, resetMs))
      }
    }
    const isCrowd = calls >= minCrowd && this.#inFlight === 1
    const half = isCrowd ? Math.ceil(calls / 2) : calls
    wake(0, half)
    if (isCrowd) this.#options.runtime.timers.setImmediate(() => wake(half, calls))
  }

  #fail({ key, runs }: KeyCalls): void {
    for (const { cost, id, waiters } of runs) {
      for (const answer of waiters) answer(this.#options.fallback(key, cost, id))
    }
  }
}

/** The cost, and the number of calls for each key unless each has one. */
function evenArguments(cost: number, batch: readonly KeyCalls[]): RedisArgument[] {
  const args: RedisArgument[] = [cost]
  if (batch.some(({ runs }) => runs[0]!.waiters.length > 1)) {
    for (const { runs } of batch) args.push(runs[0]!.waiters.length)
  }
  return args
}

function callsOf(batch: readonly KeyCalls[]): number {
  let calls = 0
  for (const { runs } of batch) for (const { waiters } of runs) calls += waiters.length
  return calls
}
