import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { encodeCommand, isErrorReply, RespClient } from '@firebreak/core/resp'
import type { CachedReply } from '../cache/cached-reply.ts'
import type { HotKey } from '../cache/hot-key.ts'
import type { KeptKeys } from '../cache/key-lists.ts'
import type { KeySpace } from '../gate/key-space.ts'
import { guardPipe } from '../trouble/guard.ts'
import type { Trouble } from '../trouble/trouble.ts'

/** A reply that is being served, and the command that it answers. */
export interface CanaryTarget {
  readonly hot: HotKey
  readonly commandId: string
  readonly reply: CachedReply
}

/** Options of a canary. */
export interface CanaryOptions {
  /** Roughly how often one cached reply is compared with Redis; 0: never. */
  readonly everyMs: number
  readonly leaseMs: number
  readonly clock: Clock
  readonly timers: Timers
  readonly random: () => number
  readonly trouble: Trouble
}

/** How long a key's reads go to Redis after it was found too stale. */
const bypassMs = 10_000
/** A check that Redis does not answer within this time is useless. */
const answerMs = 5000
/** How many of the keys with replies are tried until one can be checked. */
const chooseAttempts = 32

/**
 * Measures staleness rather than trusting that there is none: from time to time it reads one cached key from Redis over
 * a separate connection, which shares nothing with the watcher, and compares the bytes. If they differ, the cached
 * reply is known to be stale, and the time until it is gone is the observed staleness. A reply that outlives its
 * allowance is dropped, and the key's reads go to Redis for a while.
 */
export class Canary {
  readonly #options: CanaryOptions
  #connection: RespClient | undefined
  #connectionId = ''
  #nextAt: number
  #isLooking = false
  #isClosed = false
  #timer: TimerHandle | undefined

  constructor(options: CanaryOptions) {
    this.#options = options
    this.#nextAt = options.clock.now() + this.#pause()
  }

  /** Checks one of the keys, if it is time. */
  tick(kept: KeptKeys): void {
    const { everyMs, clock } = this.#options
    if (everyMs <= 0 || this.#isLooking || clock.now() < this.#nextAt) return
    this.#nextAt = clock.now() + this.#pause()
    const target = this.#choose(kept)
    if (target !== undefined) this.#look(target)
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#connection?.close()
  }

  /** Processes that started together do not check together. */
  #pause(): number {
    return this.#options.everyMs * (0.5 + this.#options.random())
  }

  #choose(kept: KeptKeys): CanaryTarget | undefined {
    for (let attempt = 0; attempt < chooseAttempts && kept.size > 0; attempt++) {
      const hot = kept.at(Math.floor(this.#options.random() * kept.size))
      const target = hot.pendingWrites === 0 ? hot.bareReply() : undefined
      if (target !== undefined && this.#isServed({ hot, ...target })) return { hot, ...target }
    }
    return undefined
  }

  #look(target: CanaryTarget): void {
    const { hot } = target
    const { space } = hot
    const node = space.upstream.nodeOf(hot.slot)
    if (node === undefined) return
    this.#isLooking = true
    this.#compare(target, space, node)
      // A Redis that does not answer says nothing about staleness; the next check reconnects.
      .catch(() => {})
      .finally(() => {
        this.#isLooking = false
      })
  }

  async #compare(target: CanaryTarget, space: KeySpace, node: string): Promise<void> {
    const { hot, commandId, reply } = target
    const connection = await this.#connect(space, node)
    const bytes = await connection.ask(encodeCommand([commandId, hot.bytes]))
    if (this.#isClosed || isErrorReply(bytes)) return
    if (Buffer.compare(bytes, reply.bytes) === 0) hot.noteStaleness(0)
    else this.#awaitEnd(target, this.#options.clock.now())
  }

  /** Reads like the watcher: as the same user and with the same protocol, on a separate connection. */
  async #connect(space: KeySpace, node: string): Promise<RespClient> {
    const { upstream, database, identity } = space
    const id = `${identity} ${node} ${database}`
    const known = this.#connection
    if (known !== undefined && this.#connectionId === id && !known.isClosed) return known
    known?.close()
    const connection = await RespClient.open(guardPipe(upstream.connect(node), this.#options.trouble), {
      ...upstream.credentials(),
      address: node,
      database,
      version: 3,
      connectTimeoutMs: answerMs,
      replyTimeoutMs: answerMs,
      runtime: this.#options,
    })
    if (this.#isClosed) connection.close()
    this.#connection = connection
    this.#connectionId = id
    return connection
  }

  /** Redis has another value: measures how long ours is still served. */
  #awaitEnd(target: CanaryTarget, knownAt: number): void {
    const { hot } = target
    const staleMs = this.#options.clock.now() - knownAt
    if (!this.#isServed(target)) {
      hot.noteStaleness(staleMs)
      return
    }
    if (staleMs > this.#allowedMs(hot)) {
      this.#refuse(hot, staleMs)
      return
    }
    if (!this.#isClosed) this.#timer = this.#options.timers.setTimeout(() => this.#awaitEnd(target, knownAt), 1)
  }

  #isServed({ hot, commandId, reply }: CanaryTarget): boolean {
    const now = this.#options.clock.now()
    return hot.replyTo(commandId) === reply && now < reply.expiresAt && now < reply.lease.aliveUntil
  }

  #allowedMs(hot: HotKey): number {
    const { strategy } = hot.handling
    const ruleMs = strategy.strategy === 'LocalCache' ? strategy.maxStalenessMs : undefined
    // Nothing is guaranteed before a lease has expired, and nothing at all if the strategy is not consistent.
    return ruleMs ?? (hot.isConsistent ? this.#options.leaseMs * 3 : Number.POSITIVE_INFINITY)
  }

  #refuse(hot: HotKey, staleMs: number): void {
    hot.noteStaleness(staleMs)
    hot.drop()
    hot.bypassUntil = this.#options.clock.now() + bypassMs
    this.#options.trouble.note(
      'stale-value',
      `a value under rule ${hot.handling.ruleId} was still served ${Math.round(staleMs)} ms after it changed in Redis; its key is read from Redis for ${bypassMs / 1000} s`,
    )
  }
}
