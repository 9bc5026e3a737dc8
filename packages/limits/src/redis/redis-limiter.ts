import { asListener, InvalidOptionError, type Runtime, systemRuntime, type Timers } from '@firebreak/core'
import { type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import type { Answer, LimiterCounts } from '../answer.ts'
import { LimitCostError, LimitUnavailableError } from '../errors.ts'
import { isCost, LocalLimiter, requireCost } from '../local/local-limiter.ts'
import type { LimitSpec } from '../spec/spec.ts'
import { capacityOf, spanMs, specId } from '../spec/specs.ts'
import { requireWhole } from '../spec/whole-ratio.ts'
import { WaitingLine, type WaitOptions } from '../wait/waiting-line.ts'
import { Availability } from './availability.ts'
import { DeniedMemory } from './denied-memory.ts'
import { type LeaseOptions, Leases } from './leases.ts'
import { LimitKeys } from './limit-keys.ts'
import { type RedisPlan, redisPlan } from './redis-plan.ts'
import { scriptOf } from './scripts.ts'
import { ServerScripts } from './server-scripts.ts'
import { type BatcherOptions, TakeBatcher } from './take-batcher.ts'

/** Options of a limiter on Redis. */
export interface RedisLimiterOptions {
  /** The prefix of its keys. @default 'fb:limit' */
  readonly prefix?: string
  /** The name in answers of `all` and in metrics. @default derived from the spec */
  readonly name?: string
  /** How long Redis may take to answer. @default 50 */
  readonly deadlineMs?: number
  /**
   * What to answer while Redis is unreachable: allow, deny, or limit within this process.
   * @default 'open'
   */
  readonly onUnavailable?: 'open' | 'closed' | 'local'
  /** Consecutive failures after which Redis is only probed. @default 3 */
  readonly breakerFailures?: number
  /** How often it is probed then. @default 200 */
  readonly probeMs?: number
  /**
   * For how many milliseconds the event loop is kept from sleeping when 32 or more callers wait for one reply and the
   * last one came within that time; see `AwakeLoop`. 0: never.
   * @default 0.15
   */
  readonly awakeMs?: number
  /** Deny a denied key again without asking, until its `retryAfterMs`. @default true (never for `concurrency`) */
  readonly rememberDenied?: boolean
  /** Lease units in advance and give them out without a call; see `Leases` for the bound. @default none */
  readonly lease?: LeaseOptions
  /** Maximum number of keys held by remembered denials, leases and the `local` policy. @default 100000 */
  readonly maxKeys?: number
  /** Maximum number of waiting calls of `wait`. @default 1000 */
  readonly maxWaiting?: number
  /** Called when Redis becomes unreachable and `onUnavailable` takes over, and when it recovers; for alarms. */
  readonly onAway?: (isAway: boolean) => void
  /** Called for each failed call, for logs. */
  readonly onError?: (error: unknown) => void
  /** @default the runtime's timers */
  readonly timers?: Timers
  /** Time, timers and ids. @default the system's */
  readonly runtime?: Runtime
  /** Only for tests: the time passed to scripts. Production always uses Redis' own. @internal */
  readonly testClock?: { now(): number }
}

/** A limiter whose state is on Redis, shared by all that use its prefix and spec. */
export class RedisLimiter {
  readonly spec: LimitSpec
  readonly name: string
  readonly counts: LimiterCounts = { allowed: 0, denied: 0, unavailable: 0, evicted: 0 }
  /** For `all`. @internal */
  readonly plan: RedisPlan
  /** @internal */
  readonly keys: LimitKeys
  /** @internal */
  readonly redis: Redis
  /** Its options. @internal */
  readonly client: RedisClient
  /** @internal */
  readonly scripts: ServerScripts
  readonly #options: RedisLimiterOptions
  readonly #runtime: Runtime
  readonly #availability: Availability
  readonly #takes: TakeBatcher
  /** For peeks and leases, which no caller waits for. */
  readonly #looks: TakeBatcher
  readonly #denied: DeniedMemory | undefined
  readonly #leases: Leases | undefined
  readonly #local: LocalLimiter | undefined
  readonly #line: WaitingLine

  constructor(spec: LimitSpec, client: RedisClient, options: RedisLimiterOptions = {}) {
    const { prefix = 'fb:limit', deadlineMs = 50, onUnavailable = 'open', awakeMs = 0.15, maxKeys = 100_000 } = options
    if (!['open', 'closed', 'local'].includes(onUnavailable)) {
      throw new InvalidOptionError('onUnavailable', onUnavailable, 'one of open, closed, local')
    }
    requireWhole('deadlineMs', deadlineMs, 1)
    requireWhole('breakerFailures', options.breakerFailures ?? 3, 1)
    requireWhole('probeMs', options.probeMs ?? 200, 1)
    requireWhole('maxWaiting', options.maxWaiting ?? 1000, 1)
    if (!(awakeMs >= 0 && awakeMs <= 1)) throw new InvalidOptionError('awakeMs', awakeMs, 'a number from 0 to 1')
    requireWhole('maxKeys', maxKeys, 1, 2 ** 24)
    if (options.lease !== undefined) requireWhole('lease.units', options.lease.units, 1, capacityOf(spec))
    this.spec = spec
    this.name = options.name ?? specId(spec)
    this.client = client
    this.redis = toRedis(client)
    this.plan = redisPlan(spec)
    this.keys = new LimitKeys(prefix, spec)
    this.#options = options
    const runtime = options.runtime ?? systemRuntime
    this.#runtime = runtime
    this.scripts = new ServerScripts(this.redis, { deadlineMs, testClock: options.testClock, runtime })
    const timers = options.timers ?? runtime.timers
    this.#availability = new Availability(this.redis, {
      clock: runtime.clock,
      deadlineMs,
      failures: options.breakerFailures ?? 3,
      probeMs: options.probeMs ?? 200,
      timers,
      onError: asListener(options.onError ?? (() => {})),
      ...(options.onAway !== undefined && { onAway: asListener(options.onAway) }),
    })
    const batcherOptions = {
      plan: this.plan,
      runtime,
      awakeMs,
      sharesCalls: this.redis.topology !== 'cluster',
      redisKeys: (key: string) => this.redisKeys(key),
      run: this.#runTake,
    }
    this.#takes = new TakeBatcher({
      ...batcherOptions,
      answered: (key, cost, admitted, denied, sentAt, denial) => {
        this.counts.allowed += admitted
        this.counts.denied += denied
        if (denial !== undefined) this.#denied?.remember(key, cost, sentAt, denial)
      },
      fallback: (key, cost, requestId) => this.#count(this.unavailable(key, cost, requestId)),
    })
    this.#looks = new TakeBatcher({
      ...batcherOptions,
      answered: () => {},
      fallback: (key) => this.unavailable(key, 0),
    })
    const remembers = (options.rememberDenied ?? true) && spec.kind !== 'concurrency' && !options.testClock
    if (remembers) this.#denied = new DeniedMemory(maxKeys, runtime.clock)
    if (options.lease !== undefined) this.#leases = new Leases(options.lease, maxKeys, runtime.clock)
    if (onUnavailable === 'local') this.#local = new LocalLimiter(spec, { maxKeys, runtime })
    this.#line = new WaitingLine({
      spec,
      take: (key, cost) => this.take(key, cost),
      peek: (key) => this.peek(key),
      // What cannot be returned now expires with its window.
      refund: (key, cost) => this.refund(key, cost).catch(() => false),
      isSynchronous: false,
      clock: runtime.clock,
      timers,
      maxWaiting: options.maxWaiting ?? 1000,
    })
  }

  /** True while Redis counts as unreachable and the policy answers. */
  get isUnavailable(): boolean {
    return this.#availability.isOpen
  }

  /** Requests `cost` units; charged only if admitted. Never rejects because of Redis. */
  take(key: string, cost = 1, requestId?: string): Promise<Answer> {
    if (!isCost(cost)) return Promise.reject(new LimitCostError(cost))
    const known = this.#denied?.answer(key, cost)
    if (known !== undefined) return Promise.resolve(this.#count(known))
    if (this.#availability.isOpen) return Promise.resolve(this.#count(this.unavailable(key, cost, requestId)))
    if (this.#leases !== undefined && cost > 0 && cost < this.#leases.units) return this.#takeAhead(key, cost)
    return this.#takeNow(key, cost, requestId)
  }

  /** The current state; charges nothing. */
  peek(key: string): Promise<Answer> {
    if (this.#availability.isOpen) return Promise.resolve(this.unavailable(key, 0))
    return this.#looks.take(key, 0, '')
  }

  /**
   * Returns `units`, once per request id if one is given; false if that id came before. Rejects with
   * `FB_LIMIT_UNAVAILABLE` if Redis is unreachable: then it may or may not have been done, and the same id may be used
   * again.
   */
  async refund(key: string, units = 1, requestId?: string): Promise<boolean> {
    requireCost(units)
    if (units === 0) return true
    this.#denied?.forget(key)
    if (this.#availability.isOpen) {
      // What this process charged in place of Redis is returned here; anything else was charged on Redis.
      const refunded = this.#local?.refundCharged(key, units, requestId)
      if (refunded === undefined) throw new LimitUnavailableError(this.name)
      return refunded
    }
    const keys = [this.keys.state(key)]
    // A hold of `concurrency` is returned by its name, which cannot happen twice.
    const isMarked = requestId !== undefined && this.spec.kind !== 'concurrency'
    if (isMarked) keys.push(this.keys.refundMark(key, requestId))
    const markMs = Math.max(spanMs(this.spec), 60_000)
    const reply = await this.#change(() =>
      this.scripts.run(scriptOf('refund', [this.plan.algorithm]), keys, (serverNowMs) => [
        this.plan.algorithm,
        ...this.plan.parameters(serverNowMs),
        units,
        requestId ?? '',
        markMs,
      ]),
    )
    this.#line.poke(key)
    return reply[0] === 1
  }

  /** Calls of `wait` not served yet. */
  get waiting(): number {
    return this.#line.waiting
  }

  /** Forgets a key: unused and not blocked. Rejects with `FB_LIMIT_UNAVAILABLE` if Redis is unreachable. */
  async reset(key: string): Promise<void> {
    this.#denied?.forget(key)
    this.#leases?.forget(key)
    this.#local?.reset(key)
    await this.#change(() => this.redis.send(['DEL', ...this.redisKeys(key)]))
    this.#line.poke(key)
  }

  /**
   * Denies a key for this long, regardless of its limit. Rejects with `FB_LIMIT_UNAVAILABLE` if Redis is unreachable.
   */
  async block(key: string, forMs: number): Promise<void> {
    requireWhole('forMs', forMs, 0)
    this.#denied?.forget(key)
    this.#leases?.forget(key)
    this.#local?.block(key, forMs)
    await this.#change(() => this.scripts.run(scriptOf('block', []), this.redisKeys(key).slice(-1), () => [forMs]))
  }

  /** Makes a change whose only result is success: it is done, or the caller learns that it may not have been. */
  async #change<T>(call: () => Promise<T>): Promise<T> {
    const reply = await this.guarded(call)
    if (reply === undefined) throw new LimitUnavailableError(this.name)
    return reply
  }

  /**
   * Waits for its turn instead of being denied: first come, first served in this process, bounded in time and number.
   */
  async wait(key: string, cost = 1, options: WaitOptions = {}): Promise<Answer> {
    requireCost(cost)
    return this.#line.wait(key, cost, options)
  }

  /** The state's key, and the block's if the state is not a string that can hold it. @internal */
  redisKeys(key: string): readonly string[] {
    const { algorithm } = this.plan
    const state = this.keys.state(key)
    return algorithm === 'log' || algorithm === 'concurrency' ? [state, this.keys.block(key)] : [state]
  }

  /** A name for a hold that has none. @internal */
  newId(): string {
    return this.#runtime.newId()
  }

  /** Makes a call under the circuit breaker; undefined if Redis is unreachable. @internal */
  async guarded<T>(call: () => Promise<T>): Promise<T | undefined> {
    if (this.#availability.isOpen) return undefined
    try {
      return await this.#availability.call(call)
    } catch {
      return undefined
    }
  }

  readonly #runTake: BatcherOptions['run'] = (script, keys, args, done, failed) => {
    const { algorithm } = this.plan
    const argsOf = (serverNowMs: number) => [algorithm, ...this.plan.parameters(serverNowMs), ...args]
    this.#availability.start(() => this.scripts.run(script, keys, argsOf), done, failed)
  }

  #takeNow(key: string, cost: number, requestId?: string): Promise<Answer> {
    if (this.plan.algorithm !== 'concurrency') return this.#takes.take(key, cost, '')
    return this.#takes.take(key, cost, requestId ?? this.#runtime.newId())
  }

  /** Serves from a lease, fetching one if there is none: callers of one key share the fetch. */
  async #takeAhead(key: string, cost: number): Promise<Answer> {
    const leases = this.#leases!
    for (let attempt = 0; attempt < 3; attempt++) {
      const leased = leases.use(key, cost)
      if (leased !== undefined) return this.#count(leased)
      const fetched = await leases.fetch(key, () => this.#looks.take(key, leases.units, ''))
      if (fetched.source !== 'redis') return this.#count(this.unavailable(key, cost))
      if (!fetched.allowed) break
    }
    return this.#takeNow(key, cost)
  }

  #count(answer: Answer): Answer {
    if (answer.allowed) this.counts.allowed++
    else this.counts.denied++
    return answer
  }

  /** The policy's answer while Redis is unreachable. @internal */
  unavailable(key: string, cost: number, requestId = ''): Answer {
    this.counts.unavailable++
    if (this.#local !== undefined) return this.#local.take(key, cost, requestId)
    const isOpen = this.#options.onUnavailable !== 'closed' && cost <= this.plan.maxCost
    return {
      allowed: isOpen,
      // Nothing is known; an open policy admits everything that the limit could.
      remaining: isOpen ? this.plan.maxCost - cost : 0,
      retryAfterMs: isOpen ? 0 : cost > this.plan.maxCost ? null : (this.#options.probeMs ?? 200),
      resetMs: 0,
      delayMs: 0,
      source: isOpen ? 'open' : 'closed',
    }
  }
}

/** A limiter on Redis; `client` is an ioredis or node-redis client, or Firebreak's own `Redis`. */
export function redisLimiter(spec: LimitSpec, client: RedisClient, options?: RedisLimiterOptions): RedisLimiter {
  return new RedisLimiter(spec, client, options)
}
