import { systemRuntime } from '@firebreak/core'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
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

const startMs = Date.UTC(2026, 0, 1, 2)
const stores: Record<string, (clock: { now(): number }) => RuleStore> = {
  memory: (clock) => new MemoryRuleStore({ runtime: { ...systemRuntime, clock, wallClock: clock } }),
  'redis with lists': (testClock) =>
    new RedisRuleStore(client, { testClock, prefix: `{t${prefixes++}}`, deadlineMs: 20_000 }),
  'redis with sorted sets': (testClock) =>
    new RedisRuleStore(client, { testClock, prefix: `{t${prefixes++}}`, leakStorage: 'zset', deadlineMs: 20_000 }),
}

describe.each(Object.keys(stores))('on %s', (name) => {
  function open(rules: string, dicts: Record<string, string> = {}) {
    const clock = { at: startMs, now: () => clock.at }
    const service = new RuleService({ store: stores[name]!(clock), clock })
    const text = (lines: string) =>
      `[dicts]\n${Object.keys(dicts)
        .map((dict) => `${dict} : ${dict}.dat`)
        .join('\n')}\n[rules]\n${lines}\n[result]\n3 : {"Ret_type":3,"Str_reason":"Vcode"}\n`
    const load = (lines: string) =>
      service.load(
        parsePolicyText(text(lines), 'p.conf', (path) => dicts[path.replace('.dat', '')] ?? ''),
        'test',
      )
    load(rules)
    const through = async (parameters: Record<string, string>) =>
      (await service.browse(parameters, true)).row['Ret_code']
    return { service, clock, load, through }
  }

  /** The seconds at which calls pass. */
  async function passedAt(rule: string, seconds: readonly number[]): Promise<number[]> {
    const { clock, through } = open(rule)
    const passed: number[] = []
    for (const second of seconds) {
      clock.at = startMs + second * 1000
      if ((await through({ act: 'ask', uid: '7' })) === 0) passed.push(second)
    }
    return passed
  }

  test('3 per 5 s as count: 5 pass around the boundary of second 5', async () => {
    const passed = await passedAt(
      'rule : [count] [act=ask; uid=+] [time=5; count=3] [result=2; return=201]',
      [0, 4, 4.5, 4.8, 5, 5.5, 5.9, 6],
    )
    expect(passed).toEqual([0, 4, 4.5, 5, 5.5, 5.9])
    expect(passed.filter((second) => second >= 4 && second < 6)).toHaveLength(5)
  })

  test('3 per 5 s as leak: never more than 3 in any 5 s', async () => {
    const seconds = Array.from({ length: 80 }, (_, index) => index / 4)
    const passed = await passedAt('rule : [leak] [act=ask; uid=+] [time=5; count=3] [result=2; return=201]', seconds)
    expect(passed.slice(0, 6)).toEqual([0, 0.25, 0.5, 5, 5.25, 5.5])
    for (const from of passed) {
      expect(passed.filter((second) => second >= from && second < from + 5).length).toBeLessThanOrEqual(3)
    }
  })

  test('base limits only what comes after its number in the day', async () => {
    const { clock, through } = open('rule : [base] [ip=+] [base=3; time=5; count=1] [result=2; return=204]')
    const answers: unknown[] = []
    for (const second of [0, 1, 2, 3, 4, 7, 8, 9]) {
      clock.at = startMs + second * 1000
      answers.push(await through({ ip: '10.0.0.1' }))
    }
    expect(answers).toEqual([0, 0, 0, 0, 204, 204, 0, 204])
    // 16:00 UTC is midnight in Shanghai: a new day has its first three again.
    clock.at = Date.UTC(2026, 0, 1, 16)
    for (let call = 0; call < 3; call++) expect(await through({ ip: '10.0.0.1' })).toBe(0)
  })

  test('a time of 86400 is a calendar day in the policy’s time zone, with one midnight for all', async () => {
    const { clock, through } = open('rule : [count] [uid=+] [time=86400; count=1] [result=2; return=1]')
    clock.at = Date.UTC(2026, 0, 1, 15, 59, 58)
    expect(await through({ uid: '1' })).toBe(0)
    clock.at = Date.UTC(2026, 0, 1, 15, 59, 59, 999)
    expect(await through({ uid: '1' })).toBe(1)
    clock.at = Date.UTC(2026, 0, 1, 16)
    expect(await through({ uid: '1' })).toBe(0)
  })

  test('direct rules are allow and deny lists in their position; the first rule that is over wins', async () => {
    const { through, service } = open(
      `rule : [direct] [uid @ white] [time=1; count=0] [result=1; return=101]
       rule : [direct] [ip @ black] [time=1; count=0] [result=2; return=103]
       rule : [count] [act=ask; uid=+] [time=60; count=1] [result=3; return=208]
       rule : [count] [act=ask; uid=+] [time=60; count=2] [result=2; return=209]`,
      { white: '42\n# a comment\n', black: '10.0.0.0/8\n2001:db8::/32\n' },
    )
    expect(await through({ act: 'ask', uid: '42', ip: '10.1.1.1' })).toBe(101)
    expect(await through({ act: 'ask', uid: '1', ip: '10.1.1.1' })).toBe(103)
    expect(await through({ act: 'ask', uid: '1', ip: '2001:DB8::1' })).toBe(103)
    expect(await through({ act: 'ask', uid: '1', ip: '11.1.1.1' })).toBe(0)
    expect(await through({ act: 'ask', uid: '1', ip: '11.1.1.1' })).toBe(208)
    await service.update({ act: 'ask', uid: '1' })
    expect((await service.browseComplete({ act: 'ask', uid: '1' })).map(({ row }) => row['Ret_code'])).toEqual([
      208, 209,
    ])
    expect((await service.browse({ act: 'nothing' })).row).toMatchObject({ Ret_type: 0, Version: 1 })
    expect((await service.browse({ act: 'ask', uid: '9' })).row).toMatchObject({ Ret_type: 1, Version: 1 })
  })

  test('browse and update are separate, count=0 is unlimited, denied calls are not counted', async () => {
    const { service, through } = open(
      `rule : [count] [act=a; uid=+] [time=60; count=2] [result=2; return=1]
       rule : [count] [act=b; uid=+] [time=60; count=0] [result=2; return=2]`,
    )
    for (let call = 0; call < 5; call++) expect((await service.browse({ act: 'a', uid: '1' })).isDenied).toBe(false)
    await service.update({ act: 'a', uid: '1' })
    await service.update({ act: 'a', uid: '1' })
    expect((await service.browse({ act: 'a', uid: '1' })).row).toMatchObject({ Ret_type: 2, Ret_code: 1 })
    for (let call = 0; call < 5; call++) expect(await through({ act: 'a', uid: '1' })).toBe(1)
    expect(await service.value(1, { act: 'a', uid: '1' })).toMatchObject({ used: 2 })
    for (let call = 0; call < 9; call++) expect(await through({ act: 'b', uid: '1' })).toBe(0)
    expect(await service.value(2, { act: 'b', uid: '1' })).toMatchObject({ used: 0 })
  })

  test('50 concurrent calls at a limit of 3 are admitted exactly 3 times', async () => {
    for (const method of ['count', 'leak']) {
      const { through, service } = open(`rule : [${method}] [uid=+] [time=3600; count=3] [result=2; return=1]`)
      const codes = await Promise.all(Array.from({ length: 50 }, () => through({ uid: 'x' })))
      expect(codes.filter((code) => code === 0)).toHaveLength(3)
      // Nor do checks, however many at once, remove anything from a list.
      await Promise.all(Array.from({ length: 50 }, () => service.browse({ uid: 'x' })))
      expect(await service.value(1, { uid: 'x' })).toMatchObject({ used: 3 })
    }
  })

  test('counters are separate by value, even with | and : in them, and shared where {~} says so', async () => {
    const { through } = open(
      `rule : [count] [a=+; b=+] [time=60; count=1] [result=2; return=1]
       rule : [count] [act=ask,answer{~}; uid=+] [time=60; count=1] [result=2; return=2]`,
    )
    expect(await through({ a: 'x|y', b: 'z' })).toBe(0)
    expect(await through({ a: 'x', b: 'y|z' })).toBe(0)
    expect(await through({ a: 'x:y', b: 'z' })).toBe(0)
    expect(await through({ a: 'x', b: 'y:z' })).toBe(0)
    expect(await through({ a: 'x', b: 'y:z' })).toBe(1)
    expect(await through({ act: 'ask', uid: '1' })).toBe(0)
    expect(await through({ act: 'answer', uid: '1' })).toBe(2)
  })

  test('a feedback takes back erase1 or erase2 entries once per request', async () => {
    const { service, through } = open(
      'rule : [leak] [uid=+] [time=100; count=5; erase1=2; erase2=4] [result=2; return=1]',
    )
    for (let call = 0; call < 5; call++) await through({ uid: '1' })
    expect(await service.feedback({ uid: '1' }, 'erase1', 'r1')).toBe(1)
    expect(await service.feedback({ uid: '1' }, 'erase1', 'r1')).toBe(0)
    expect(await service.value(1, { uid: '1' })).toMatchObject({ used: 3 })
    await service.feedback({ uid: '1' }, 'erase2', 'r2')
    expect(await service.value(1, { uid: '1' })).toMatchObject({ used: 0 })
    expect(await through({ uid: '1' })).toBe(0)
  })

  test('a counter that expires while it is counted never becomes a permanent ban', async () => {
    const { clock, through } = open('rule : [count] [uid=+] [time=1; count=1] [result=2; return=1]')
    for (let second = 0; second < 20; second++) {
      clock.at = startMs + second * 1000
      expect(await through({ uid: '1' })).toBe(0)
      expect(await through({ uid: '1' })).toBe(1)
    }
  })

  test('a clock that steps back neither frees nor bans', async () => {
    for (const method of ['count', 'leak']) {
      const { clock, through } = open(`rule : [${method}] [uid=+] [time=10; count=1] [result=2; return=1]`)
      expect(await through({ uid: '1' })).toBe(0)
      clock.at -= 3_600_000
      expect(await through({ uid: '1' })).toBe(1)
      clock.at += 10_000
      expect(await through({ uid: '1' })).toBe(0)
    }
  })

  test('a reload keeps the counters of unchanged rules, and shadow rules never decide', async () => {
    const kept = 'rule : [count] [uid=+] [time=3600; count=2] [result=2; return=1]'
    const { service, load, through } = open(kept)
    await through({ uid: '1' })
    expect(load(`rule : [count] [uid=+] [time=3600; count=1] [result=2; return=9; shadow=1]\n${kept}`)).toBe(2)
    expect(await through({ uid: '1' })).toBe(0)
    expect((await service.browse({ uid: '1' })).row).toMatchObject({ Ret_code: 1, Version: 2 })
    expect(service.rules().map(({ return: code, over }) => [code, over])).toEqual([
      [9, 1],
      [1, 1],
    ])
    // A changed limit keeps the count too.
    load('rule : [count] [uid=+] [time=3600; count=3] [result=2; return=1]')
    expect(await through({ uid: '1' })).toBe(0)
    expect(await through({ uid: '1' })).toBe(1)
  })
})

test('every key of a rule on Redis has an expiry', async () => {
  await client.flushall()
  for (const leakStorage of ['list', 'zset'] as const) {
    const service = new RuleService({ store: new RedisRuleStore(client, { leakStorage, prefix: `{${leakStorage}}` }) })
    service.load(
      parsePolicyText(`[rules]
        rule : [count] [uid=+] [time=60; count=3] [result=2; return=1]
        rule : [count] [uid=+] [time=86400; count=3] [result=2; return=2]
        rule : [base] [uid=+] [base=1; time=60; count=3] [result=2; return=3]
        rule : [leak] [uid=+] [time=60; count=3; erase1=1] [result=2; return=4]`),
    )
    for (let call = 0; call < 5; call++) await service.browse({ uid: '1' }, true)
    await service.feedback({ uid: '1' }, 'erase1', 'r')
  }
  const keys = await client.keys('*')
  expect(keys.length).toBeGreaterThanOrEqual(8)
  for (const key of keys) expect(await client.pttl(key)).toBeGreaterThan(0)
})

test('history, diff and rollback; the version counts on', () => {
  const service = new RuleService()
  const first = parsePolicyText('[rules]\nrule : [count] [a=+] [time=1; count=1] [result=2; return=1]')
  const second = parsePolicyText(
    '[options]\ntimeZone : UTC\n[rules]\nrule : [count] [a=+] [time=1; count=2] [result=2; return=1]',
  )
  service.load(first, 'a.conf')
  service.load(second, 'b.conf')
  expect(service.diff(1, 2)).toMatchObject({
    addedRules: ['rule : [count] [a=+] [time=1; count=2] [result=2; return=1]'],
    removedRules: ['rule : [count] [a=+] [time=1; count=1] [result=2; return=1]'],
    timeZone: ['Asia/Shanghai', 'UTC'],
  })
  expect(service.rollback(1)).toBe(3)
  expect(service.policy.rules[0]!.count).toBe(1)
  expect(service.history().map(({ version, origin }) => [version, origin])).toEqual([
    [1, 'a.conf'],
    [2, 'b.conf'],
    [3, 'rollback to 1'],
  ])
  expect(() => service.rollback(99)).toThrow(/unknown policy version 99/)
})

test('a flood of new values does not free a value that is over its count', async () => {
  const store = new MemoryRuleStore({ maxCounters: 50 })
  const policy = parsePolicyText('[rules]\nrule : [count] [uid=+] [time=600; count=2] [result=2; return=1]\n', 'flood')
  const service = new RuleService({ store })
  service.load(policy)
  const denied = Array.from({ length: 20 }, (_, index) => ({ uid: `attacker ${index}` }))
  for (const call of denied) {
    await service.update(call)
    await service.update(call)
    expect((await service.browse(call)).isDenied).toBe(true)
  }
  for (let index = 0; index < 5000; index++) await service.update({ uid: `new ${index}` })
  for (const call of denied) expect((await service.browse(call)).isDenied).toBe(true)
  expect(store.size).toBeLessThanOrEqual(50)
})
