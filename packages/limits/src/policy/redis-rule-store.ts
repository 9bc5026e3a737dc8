import type { Redis } from '@firebreak/redis'
import { type RedisArgument, type RedisClient, toRedis } from '@firebreak/redis'
import type { Calendar } from '../calendar/calendar.ts'
import { escapeSegment } from '../redis/limit-keys.ts'
import { scriptOf } from '../redis/scripts.ts'
import { ServerScripts } from '../redis/server-scripts.ts'
import { daySeconds } from './policy.ts'
import { type RuleCounter, type RuleStore, type StoreAnswer, type StoreCall, timeMs } from './rule-store.ts'

/** Options for rule counters on Redis. */
export interface RedisRuleStoreOptions {
  /**
   * The prefix of all keys, with the hash tag that puts them on one node: one call's counters must be decided in one
   * step.
   * @default '{fb:rules}'
   */
  readonly prefix?: string
  /** How the times of leak rules are kept. A list is smaller, a sorted set is readable with its scores. @default 'list' */
  readonly leakStorage?: 'list' | 'zset'
  /** A call that has not run by then will not run. @default 1000 */
  readonly deadlineMs?: number
  /** Only for tests: the time passed to scripts. @internal */
  readonly testClock?: { now(): number }
}

/** Counters of rules on Redis, shared by all services with the same prefix; each call is one script. */
export class RedisRuleStore implements RuleStore {
  readonly #redis: Redis
  readonly #scripts: ServerScripts
  readonly #prefix: string
  readonly #leakStorage: 'list' | 'zset'
  readonly #script = scriptOf('rules', [])

  constructor(client: RedisClient, options: RedisRuleStoreOptions = {}) {
    this.#redis = toRedis(client)
    this.#prefix = options.prefix ?? '{fb:rules}'
    this.#leakStorage = options.leakStorage ?? 'list'
    this.#scripts = new ServerScripts(this.#redis, {
      deadlineMs: options.deadlineMs ?? 1000,
      testClock: options.testClock,
    })
  }

  async decide({ mode, counters, deciding, isDeniedOtherwise, days }: StoreCall): Promise<StoreAnswer> {
    if (counters.length === 0) return { isCounted: mode !== 'look' && !isDeniedOtherwise, states: [] }
    const reply = await this.#scripts.run(this.#script, counters.map(this.#keyOf), (serverNowMs) => [
      mode,
      deciding,
      isDeniedOtherwise ? 1 : 0,
      ...edges(days, serverNowMs),
      this.#leakStorage,
      ...counters.flatMap(counterArgs),
    ])
    const states = counters.map((_, index) => ({
      isOver: reply[1 + index * 3] === 1,
      used: reply[2 + index * 3]!,
      usedToday: reply[3 + index * 3]!,
    }))
    return { isCounted: reply[0] === 1, states }
  }

  async takeBack(
    counter: RuleCounter,
    entries: number,
    requestId: string | undefined,
    days: Calendar,
  ): Promise<boolean> {
    const keys = [this.#keyOf(counter)]
    if (requestId !== undefined) keys.push(`${this.#keyOf(counter)}:back:${escapeSegment(requestId)}`)
    const reply = await this.#scripts.run(this.#script, keys, (serverNowMs) => [
      'back',
      0,
      0,
      ...edges(days, serverNowMs),
      this.#leakStorage,
      ...counterArgs(counter),
      entries,
      daySeconds * 1000,
    ])
    return reply[0] === 1
  }

  async checkAlive(): Promise<void> {
    await this.#redis.send(['GET', `${this.#prefix}:alive`])
  }

  readonly #keyOf = (counter: RuleCounter): string => `${this.#prefix}:${counter.key}`
}

function edges(days: Calendar, serverNowMs: number): number[] {
  const today = days.windowOf(serverNowMs)
  return [today.start, today.end, days.windowOf(today.end).end]
}

function counterArgs({ rule, denies }: RuleCounter): RedisArgument[] {
  return [
    rule.method,
    rule.timeSeconds === daySeconds ? 0 : timeMs(rule),
    rule.count,
    rule.base,
    denies ? 1 : 0,
    rule.shadow ? 0 : 1,
  ]
}
