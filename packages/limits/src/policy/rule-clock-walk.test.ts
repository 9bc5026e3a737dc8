import { systemRuntime } from '@firebreak/core'
import { type RedisServer, scale, seededRandom, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { MemoryRuleStore } from './memory-rule-store.ts'
import { parsePolicyText } from './parse-policy.ts'
import { RedisRuleStore } from './redis-rule-store.ts'
import { RuleService } from './rule-service.ts'
import type { RuleStore } from './rule-store.ts'

let server: RedisServer
let client: Redis
let prefixes = 0
beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

const dayMs = 86_400_000
/** Half a second before midnight UTC, so that the walks can cross the end of a day. */
const startMs = Date.UTC(2026, 2, 28, 23, 59, 59, 500)

interface Clock {
  at: number
  now(): number
}
const stores: Record<string, (clock: Clock) => RuleStore> = {
  memory: (clock) => new MemoryRuleStore({ runtime: { ...systemRuntime, clock, wallClock: clock } }),
  'redis, lists': (testClock) =>
    new RedisRuleStore(client, { testClock, prefix: `{w${prefixes++}}`, deadlineMs: 20_000 }),
  'redis, sorted sets': (testClock) =>
    new RedisRuleStore(client, { testClock, prefix: `{w${prefixes++}}`, leakStorage: 'zset', deadlineMs: 20_000 }),
}

/** A rule with a span, and how much one stretch of the clock within a span may admit; for `base`, a day's free calls on top. */
interface Walked {
  readonly rule: string
  readonly spanMs: number
  readonly most: number
  readonly mostADay?: number
}
const walked: Record<string, Walked> = {
  count: { rule: '[count] [uid=+] [time=10; count=10]', spanMs: 10_000, most: 20 },
  'count of a day': { rule: '[count] [uid=+] [time=86400; count=10]', spanMs: dayMs, most: 20 },
  leak: { rule: '[leak] [uid=+] [time=10; count=10]', spanMs: 10_000, most: 10 },
  'leak of a day': { rule: '[leak] [uid=+] [time=86400; count=10]', spanMs: dayMs, most: 10 },
  base: { rule: '[base] [uid=+] [base=5; time=10; count=10]', spanMs: 10_000, most: 20, mostADay: 10 },
  'base of a day': { rule: '[base] [uid=+] [base=5; time=86400; count=10]', spanMs: dayMs, most: 20, mostADay: 10 },
}
const cases = Object.entries(walked).flatMap(([name, rule]) =>
  Object.keys(stores).map((store) => ({ name, store, rule })),
)

function open(store: string, rule: string) {
  const clock: Clock = { at: startMs, now: () => clock.at }
  const service = new RuleService({ store: stores[store]!(clock), clock })
  service.load(parsePolicyText(`[options]\ntimeZone : UTC\n[rules]\nrule : ${rule} [result=2; return=7]\n`), 'test')
  const isAdmitted = async () => (await service.browse({ uid: '1' }, true)).row['Ret_code'] === 0
  const drain = async (atMost: number): Promise<number> => {
    let admitted = 0
    while (admitted < atMost && (await isAdmitted())) admitted++
    return admitted
  }
  return { clock, service, isAdmitted, drain }
}

/** Splits readings into stretches that differ by at most a span. */
class Stretches {
  count = 1
  #low = Number.POSITIVE_INFINITY
  #high = Number.NEGATIVE_INFINITY
  readonly #spanMs: number

  constructor(spanMs: number) {
    this.#spanMs = spanMs
  }

  read(nowMs: number): void {
    this.#low = Math.min(this.#low, nowMs)
    this.#high = Math.max(this.#high, nowMs)
    if (this.#high - this.#low <= this.#spanMs) return
    this.count++
    this.#low = this.#high = nowMs
  }
}

/** A step of a walk: within two hundredths of the span, half of it, all of it, or beyond. */
function steps(seed: number, spanMs: number): { readonly at: number; readonly calls: number }[] {
  const random = seededRandom(seed)
  const reach = spanMs * [0.02, 0.5, 1, 2.5][seed % 4]!
  let at = startMs
  return Array.from({ length: 40 }, () => {
    const moveMs = Math.floor((random() * 2 - 1) * reach)
    at = random() < 0.2 ? startMs + moveMs : at + moveMs
    return { at, calls: Math.ceil(random() * 12) }
  })
}

test.each(cases)('$name, $store: a clock that goes back and forth within a span grants nothing', async (walk) => {
  const { spanMs, rule, most, mostADay = 0 } = walk.rule
  for (const backMs of [1, spanMs / 2, spanMs - 1, spanMs]) {
    const { clock, drain } = open(walk.store, rule)
    let admitted = await drain(100)
    for (let round = 0; round < 10; round++) {
      clock.at = startMs - backMs
      admitted += await drain(100)
      clock.at = startMs
      admitted += await drain(100)
    }
    expect(admitted, `back by ${backMs}`).toBeLessThanOrEqual(most + mostADay)
  }
})

test.each(cases)('$name, $store: no random walk of the clock admits more than the bound', async (walk) => {
  const { spanMs, rule, most, mostADay = 0 } = walk.rule
  const isLocal = walk.store === 'memory'
  for (let seed = 1; seed <= scale(isLocal ? 200 : 6, isLocal ? 2000 : 60); seed++) {
    const { clock, drain } = open(walk.store, rule)
    const [stretches, days] = [new Stretches(spanMs), new Stretches(dayMs)]
    let admitted = 0
    for (const [step, { at, calls }] of steps(seed, spanMs).entries()) {
      clock.at = at
      stretches.read(at)
      days.read(at)
      admitted += await drain(calls)
      const bound = most * stretches.count + mostADay * days.count
      expect(admitted, `seed ${seed}, step ${step}`).toBeLessThanOrEqual(bound)
    }
  }
})

test.each(cases)('$name, $store: no step of the clock bans anybody for longer than a span', async (walk) => {
  const { spanMs, rule } = walk.rule
  for (const backMs of [1, spanMs / 2, spanMs, spanMs * 1.5, spanMs * 10, 400 * dayMs]) {
    const { clock, drain, isAdmitted } = open(walk.store, rule)
    await drain(100)
    clock.at -= Math.floor(backMs)
    await isAdmitted()
    clock.at += spanMs + 1
    expect(await isAdmitted(), `back by ${backMs}`).toBe(true)
  }
})

test.each(Object.entries(walked))('%s: memory, lists and sorted sets answer every walk alike', async (_, walk) => {
  for (let seed = 1; seed <= scale(6, 100); seed++) {
    const opened = Object.keys(stores).map((store) => open(store, walk.rule))
    for (const [step, { at, calls }] of steps(seed, walk.spanMs).entries()) {
      const answers: unknown[] = []
      for (const { clock, service } of opened) {
        clock.at = at
        const codes: unknown[] = []
        for (let call = 0; call < calls; call++) codes.push((await service.browse({ uid: '1' }, true)).row['Ret_code'])
        if (step % 5 === 4) codes.push(await service.feedback({ uid: '1' }, 'erase1', `r${step}`))
        codes.push(await service.value(7, { uid: '1' }))
        answers.push(codes)
      }
      expect(answers[1], `seed ${seed}, step ${step}`).toEqual(answers[0])
      expect(answers[2], `seed ${seed}, step ${step}`).toEqual(answers[0])
    }
  }
})
