import type { HotKey } from '../cache/hot-key.ts'
import type { CombineOwner, WaitingCounter } from './combine-owner.ts'
import type { CombineListener, CombineOutcome, CombinePart, CombineWay } from './combine-part.ts'
import type { CombineRights } from './combine-rights.ts'
import { type CounterName, largestCombined, wordsAlone, wordsTogether } from './counter-command.ts'
import { repliesOf } from './replies-of.ts'

/** After Redis has refused a sum, increments are sent separately for this long. */
const plainMs = 5000

/** What the counters of one key on one connection share. */
export interface CounterContext {
  readonly hot: HotKey
  readonly way: CombineWay
  readonly rights: CombineRights
  /** The shield's time. */
  now(): number
}

/**
 * One counter (a key, or a field of a hash) over one connection to Redis: many callers' increments become few commands.
 *
 * *How.* The first increment waits until the current turn of the event loop ends; those that arrive while a command is
 * in flight wait for its answer. Then all of them are sent as one INCRBY (or DECRBY, HINCRBY) of their sum. Redis
 * returns the value after the last of them; the others' values follow by subtraction, in order of arrival. All of them
 * were in flight when Redis carried it out, so each could have been carried out at that moment by itself, in this
 * order. Nobody is answered before Redis has answered.
 *
 * *One direction only.* Increments and decrements are sent as two commands. The values in between then lie between two
 * that Redis had, so none of them can have exceeded 64 bits, where Redis would have refused one of the parts.
 *
 * *Refused.* An error means that nothing was done, so the parts are resent, each by itself: each caller gets its own
 * error or value. A lost connection says nothing, so nothing is resent: each caller gets the error that its own command
 * would have got.
 *
 * *Permissions.* A user may be allowed one of the commands and not another. A command is only combined if the same one,
 * by the same user on the same key, was recently carried out by itself.
 */
export class CombinedCounter implements WaitingCounter {
  readonly hot: HotKey
  readonly #context: CounterContext
  readonly #key: Uint8Array
  readonly #field: Uint8Array | undefined
  #ups: CombinePart[] = []
  #downs: CombinePart[] = []
  #upSum = 0
  #downSum = 0
  #onTheirWay = 0
  #isDeferred = false
  /** The counter's value as last reported by Redis; undefined if unknown. */
  #last: number | bigint | undefined
  #lastEpoch = 0
  #plainUntil = Number.NEGATIVE_INFINITY

  constructor(context: CounterContext, field: Uint8Array | undefined) {
    this.hot = context.hot
    this.#context = context
    this.#key = context.hot.bytes
    this.#field = field
  }

  /** True while nothing waits and nothing is on its way. */
  get isIdle(): boolean {
    return this.#onTheirWay === 0 && !this.#isDeferred && this.#ups.length + this.#downs.length === 0
  }

  /** Adds an increment: it waits for others, or is sent at once. */
  join(part: CombinePart): void {
    const { owner, command } = part
    if (owner.waiting !== undefined && owner.waiting !== this) owner.waiting.flush()
    if (!this.#mayWait(part)) {
      if (owner.waiting === this) this.flush()
      this.#sendAlone(part)
      return
    }
    const others = command.amount < 0 ? this.#ups : this.#downs
    // Keeps one owner's commands in order.
    if (others.length > 0 && owner.waiting === this && others.some((other) => other.owner === owner)) this.flush()
    if (!this.#hasRoomFor(command.amount)) this.flush()
    this.#take(part)
    if (this.#onTheirWay > 0 || this.#isDeferred) return
    this.#isDeferred = true
    this.#context.way.defer(() => {
      this.#isDeferred = false
      if (this.#onTheirWay === 0) this.#flushSafely()
    })
  }

  flush(): void {
    const ups = this.#ups
    const downs = this.#downs
    if (ups.length + downs.length === 0) return
    const upSum = this.#upSum
    const downSum = this.#downSum
    this.#empty()
    for (const part of ups) part.owner.waiting = undefined
    for (const part of downs) part.owner.waiting = undefined
    this.#send(ups, upSum)
    this.#send(downs, downSum)
  }

  flushAlone(owner: CombineOwner): void {
    owner.waiting = undefined
    const own: CombinePart[] = []
    const left: CombinePart[] = []
    for (const part of [...this.#ups, ...this.#downs]) (part.owner === owner ? own : left).push(part)
    this.#empty()
    for (const part of left) this.#take(part)
    for (const part of own) this.#sendAlone(part)
  }

  #take(part: CombinePart): void {
    if (this.#ups.length + this.#downs.length === 0) this.hot.setWaiting(this, true)
    part.owner.waiting = this
    const { amount } = part.command
    if (amount < 0) {
      this.#downs.push(part)
      this.#downSum += amount
    } else {
      this.#ups.push(part)
      this.#upSum += amount
    }
  }

  #empty(): void {
    this.#ups = []
    this.#downs = []
    this.#upSum = 0
    this.#downSum = 0
    this.hot.setWaiting(this, false)
  }

  #hasRoomFor(amount: number): boolean {
    const { strategy } = this.hot.handling
    const max = strategy.strategy === 'Combine' ? strategy.maxCombined : 1
    if (this.#ups.length + this.#downs.length >= max) return false
    return amount < 0 ? this.#downSum + amount >= -largestCombined : this.#upSum + amount <= largestCombined
  }

  /** What was known no longer holds if somebody here wrote the key, or permissions may have changed. */
  #renew(): void {
    const { epoch } = this.hot
    if (this.#lastEpoch === epoch) return
    this.#lastEpoch = epoch
    this.#last = undefined
  }

  /** True if an increment may be combined with others, as far as is known. */
  #canCombine(part: CombinePart): boolean {
    this.#renew()
    const { rights } = this.#context
    const now = this.#context.now()
    if (this.#last === undefined || now < this.#plainUntil) return false
    return isSmall(this.#last) && rights.isProven(part.command.name, now, this.hot.epoch)
  }

  /** True if an increment may wait for others; false if it is the one that finds out. */
  #mayWait(part: CombinePart): boolean {
    if (this.#canCombine(part)) return true
    if (this.#context.now() < this.#plainUntil || (this.#last !== undefined && !isSmall(this.#last))) return false
    return this.#onTheirWay > 0
  }

  /** Like `flush` when nobody would retry: after an error each is sent separately. */
  #flushSafely(): void {
    this.hot.trouble.attempt(
      () => this.flush(),
      () => {
        const parts = [...this.#ups, ...this.#downs]
        this.#ups = []
        this.#downs = []
        this.#upSum = this.#downSum = 0
        for (const { owner } of parts) owner.waiting = undefined
        for (const part of parts) this.#sendAlone(part)
      },
    )
  }

  #send(parts: readonly CombinePart[], sum: number): void {
    let areTogether = false
    this.hot.trouble.attempt(() => {
      areTogether = parts.length > 1 && this.#areAllProven(parts)
    })
    if (areTogether) this.#sendTogether(parts, sum)
    else for (const part of parts) this.#sendAlone(part)
  }

  /** Nearly always they all use one command: look it up once. */
  #areAllProven(parts: readonly CombinePart[]): boolean {
    let proven: CounterName | undefined
    for (const part of parts) {
      const { name } = part.command
      if (name === proven) continue
      if (!this.#canCombine(part)) return false
      proven = name
    }
    return true
  }

  #sendAlone(part: CombinePart): void {
    const { name } = part.command
    const words = wordsAlone(part.command, this.#key, this.#field)
    this.#fly(
      [part],
      (listener) => part.sendAlone(words, listener),
      (outcome) => {
        const { rights } = this.#context
        if (outcome.kind === 'value') rights.prove(name, this.#context.now(), this.hot.epoch)
        else rights.forget(name)
      },
    )
  }

  #sendTogether(parts: readonly CombinePart[], sum: number): void {
    const words = wordsTogether(sum, this.#key, this.#field)
    const { trouble } = this.hot
    trouble.attempt(() => {
      for (const { owner } of parts) owner.merge(this.hot)
    })
    this.#fly(
      parts,
      (listener) => this.#context.way.send(words, parts, listener),
      (outcome) => {
        trouble.attempt(() => {
          for (const { owner } of parts) owner.unmerge()
        })
        trouble.attempt(
          () => this.#settle(parts, sum, outcome),
          (error) => this.#failAll(parts, error),
        )
      },
    )
  }

  /**
   * Sends a command and handles its outcome once; if our code fails, no caller is left waiting and the counter carries
   * on.
   */
  #fly(
    parts: readonly CombinePart[],
    send: (listener: CombineListener) => void,
    handle: (outcome: CombineOutcome) => void,
  ): void {
    const { trouble } = this.hot
    let isOver = false
    const end = (outcome: CombineOutcome) => {
      if (isOver) return
      isOver = true
      this.#onTheirWay--
      trouble.attempt(() => this.#learn(outcome))
      trouble.attempt(() => this.hot.endWrite())
      trouble.attempt(() => handle(outcome))
      this.#flushSafely()
    }
    this.#onTheirWay++
    trouble.attempt(() => this.hot.beginWrite())
    trouble.attempt(
      () => send(end),
      (reason) => {
        end({ kind: 'lost', reason })
        this.#failAll(parts, reason)
      },
    )
  }

  /** An unknown outcome counts as a failure, as after a lost connection. */
  #failAll(parts: readonly CombinePart[], error: unknown): void {
    for (const part of parts) this.hot.trouble.attempt(() => part.fail(error))
  }

  #settle(parts: readonly CombinePart[], sum: number, outcome: CombineOutcome): void {
    switch (outcome.kind) {
      case 'value': {
        this.hot.countCombined(parts.length - 1)
        const replies = repliesOf(outcome.value, sum, parts)
        for (let index = 0; index < parts.length; index++) {
          const part = parts[index]!
          this.hot.trouble.attempt(
            () => part.answer(replies[index]!),
            (error) => part.fail(error),
          )
        }
        return
      }
      case 'refused':
        this.#plainUntil = this.#context.now() + plainMs
        for (const part of parts) this.#sendAlone(part)
        return
      case 'lost':
        for (const part of parts) part.fail(outcome.reason)
    }
  }

  #learn(outcome: CombineOutcome): void {
    this.#renew()
    this.#last = outcome.kind === 'value' ? outcome.value : undefined
  }
}

function isSmall(value: number | bigint): boolean {
  return value <= largestCombined && value >= -largestCombined
}
