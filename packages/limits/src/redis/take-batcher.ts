import { steadyClock } from '@firebreak/core'
import type { RedisArgument } from '@firebreak/redis'
import type { Answer } from '../answer.ts'
import { admittedAnswer, deniedAnswer, type RedisPlan } from './redis-plan.ts'

/** The calls for one key since the last flush: runs of equal cost, in order, and who waits for each call. */
interface KeyCalls {
  readonly key: string
  readonly costs: number[]
  readonly calls: number[]
  readonly ids: string[]
  readonly waiters: ((answer: Answer) => void)[]
}

/** What a batcher needs of its limiter. */
export interface BatcherOptions {
  readonly plan: RedisPlan
  /** False where each key must travel alone (a cluster: keys lie on different nodes). */
  readonly sharesCalls: boolean
  /** The keys of a limit's key on Redis. */
  redisKeys(key: string): readonly string[]
  /** Runs the take script; the reply without the time. */
  run(keys: readonly string[], args: readonly RedisArgument[]): Promise<readonly number[]>
  /** Hears of each answer of Redis before its caller does; `sentAt` is the steady clock's when it was asked. */
  answered(key: string, cost: number, sentAt: number, answer: Answer): void
  /** The answer where the call failed. */
  fallback(key: string, cost: number, requestId: string): Answer
}

/** Script calls of one limiter on their way at once; what comes meanwhile forms the next batch. */
const maxInFlight = 8
/** Keys in one script call; a script holds up the server for all others. */
const maxKeysPerCall = 50

/**
 * Same-turn calls become one script call.
 *
 * Calls are gathered until the running turn of the event loop has finished all its promise work, then sent together:
 * equal costs of one key as one number, in the order in which they came, so that exactly those are admitted that would
 * have been one by one. While `maxInFlight` calls are on their way, later ones wait for a reply and form the next batch:
 * this bounds what a dying connection can hold. When a call fails, what waits behind it fails with it.
 */
export class TakeBatcher {
  readonly #options: BatcherOptions
  readonly #named: boolean
  #pending = new Map<string, KeyCalls>()
  #inFlight = 0
  #isScheduled = false

  constructor(options: BatcherOptions) {
    this.#options = options
    this.#named = options.plan.algorithm === 'concurrency'
  }

  take(key: string, cost: number, requestId: string): Promise<Answer> {
    return new Promise<Answer>((resolve) => {
      let calls = this.#pending.get(key)
      if (calls === undefined) {
        calls = { key, costs: [], calls: [], ids: [], waiters: [] }
        this.#pending.set(key, calls)
        this.#schedule()
      }
      const last = calls.costs.length - 1
      if (last >= 0 && calls.costs[last] === cost && !this.#named) calls.calls[last]!++
      else {
        calls.costs.push(cost)
        calls.calls.push(1)
        calls.ids.push(requestId)
      }
      calls.waiters.push(resolve)
    })
  }

  #schedule(): void {
    if (this.#isScheduled || this.#inFlight >= maxInFlight) return
    this.#isScheduled = true
    // A tick that is asked for by a microtask comes after all microtasks: every caller of this turn has spoken.
    queueMicrotask(() => process.nextTick(this.#flush))
  }

  readonly #flush = (): void => {
    this.#isScheduled = false
    const pending = [...this.#pending.values()]
    this.#pending = new Map()
    const size = this.#options.sharesCalls ? maxKeysPerCall : 1
    for (let start = 0; start < pending.length; start += size) void this.#send(pending.slice(start, start + size))
  }

  async #send(batch: readonly KeyCalls[]): Promise<void> {
    const { redisKeys, run } = this.#options
    const sameCost = this.#sameCost(batch)
    const areSingle = sameCost > 0 && batch.every(({ waiters }) => waiters.length === 1)
    const keys: string[] = []
    const args: RedisArgument[] = [sameCost]
    for (const { key, costs, calls, ids } of batch) {
      keys.push(...redisKeys(key))
      if (areSingle) continue
      if (sameCost > 0) {
        args.push(calls[0]!)
        continue
      }
      args.push(costs.length)
      for (let index = 0; index < costs.length; index++) {
        args.push(costs[index]!, calls[index]!)
        if (this.#named) args.push(ids[index]!)
      }
    }
    this.#inFlight++
    const sentAt = steadyClock.now()
    try {
      const reply = await run(keys, args)
      let position = 0
      for (const calls of batch) position = this.#answer(calls, sentAt, reply, position)
    } catch {
      for (const calls of batch) this.#fail(calls)
      // They were asked while Redis was not answering: waiting a deadline of their own would only add to it.
      for (const calls of this.#pending.values()) this.#fail(calls)
      this.#pending.clear()
    } finally {
      this.#inFlight--
      if (this.#pending.size > 0) this.#schedule()
    }
  }

  /** The cost of all calls of a batch where it is the same and the calls have no names; else 0. */
  #sameCost(batch: readonly KeyCalls[]): number {
    const cost = batch[0]!.costs[0]!
    const isSame = !this.#named && batch.every(({ costs }) => costs.length === 1 && costs[0] === cost)
    return isSame ? cost : 0
  }

  #answer({ key, costs, calls, waiters }: KeyCalls, sentAt: number, reply: readonly number[], start: number): number {
    const { plan } = this.#options
    let position = start
    let waiter = 0
    for (let run = 0; run < costs.length; run++) {
      const cost = costs[run]!
      const [admitted, level, retryMs, resetMs] = reply.slice(position, position + 4) as [
        number,
        number,
        number,
        number,
      ]
      for (let index = 0; index < calls[run]!; index++) {
        const answer =
          index < admitted
            ? admittedAnswer(plan, cost, admitted - 1 - index, level, resetMs)
            : deniedAnswer(plan, cost, level, retryMs, resetMs)
        this.#options.answered(key, cost, sentAt, answer)
        waiters[waiter++]!(answer)
      }
      position += 4
    }
    return position
  }

  #fail({ key, costs, calls, ids, waiters }: KeyCalls): void {
    let waiter = 0
    for (let run = 0; run < costs.length; run++) {
      for (let index = 0; index < calls[run]!; index++) {
        waiters[waiter++]!(this.#options.fallback(key, costs[run]!, ids[run]!))
      }
    }
  }
}
