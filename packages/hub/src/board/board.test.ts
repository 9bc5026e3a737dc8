import {
  decodeFrame,
  decodeInvalidation,
  encodeBinaryReport,
  type Invalidation,
  systemRuntime,
  type TableEntry,
  type Timers,
} from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import {
  FakeClock,
  fakeRuntime,
  type RedisCluster,
  type RedisServer,
  startCluster,
  startRedis,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { HubCore } from '../hub-core.ts'
import type { HubCoreOptions } from '../hub-options.ts'
import { openRedisStore } from '../store/open-redis-store.ts'
import type { RedisStore } from '../store/redis-store.ts'

let server: RedisServer
let cluster: RedisCluster
let runs = 0
const cores: HubCore[] = []

beforeAll(async () => {
  ;[server, cluster] = await Promise.all([startRedis(), startCluster({ masters: 3 })])
}, 60_000)

afterEach(async () => {
  await Promise.all(cores.splice(0).map((core) => core.close()))
})

afterAll(async () => {
  await Promise.all([server.stop(), cluster.stop()])
})

/** Several hubs of one store, each fed by hand. */
class Hubs {
  readonly cores: HubCore[] = []
  readonly prefix: string
  readonly url: string
  #sequence = 0

  constructor(url: string) {
    this.url = url
    this.prefix = `board-${process.pid}-${runs++}`
  }

  static async start(url: string, count: number, rules: object[], options: HubCoreOptions = {}): Promise<Hubs> {
    const hubs = new Hubs(url)
    for (let index = 0; index < count; index++) await hubs.add(options)
    for (const rule of rules) await hubs.cores[0]!.putRule(parseRule(rule), 'test')
    await waitFor(() => hubs.cores.every((core) => core.rules().rules.length === rules.length))
    // Each knows of the others.
    await waitFor(() => hubs.cores.every((core) => core.hubCount === count))
    return hubs
  }

  async add(options: HubCoreOptions = {}): Promise<HubCore> {
    const store: RedisStore = await openRedisStore(this.url, { prefix: this.prefix })
    const core = await HubCore.open(store, { hubId: `hub-${this.cores.length}`, loadOf: () => 0, ...options })
    core.start()
    cores.push(core)
    this.cores.push(core)
    return core
  }

  report(hub: number, counts: Record<string, number>, serviceId = 'shop', writes = 0): void {
    const now = this.cores[hub]!.now()
    const entries = Object.entries(counts).map(([key, count]) => ({ key, count, writes, bytes: 0 }))
    const ids = { serviceId, hostId: `host-${hub}`, instanceId: `i-${hub}` }
    const sections = [{ redisClusterId: 'main', entries }]
    const report = encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections })
    this.cores[hub]!.collector.collectBinary(report, 0, ++this.#sequence)
  }

  entry(hub: number, key: string, serviceId = 'shop'): TableEntry | undefined {
    return [...this.cores[hub]!.delivery.view(serviceId).entries()].find((entry) => entry.key === key)
  }

  everywhere(key: string): boolean {
    return this.cores.every((_, hub) => this.entry(hub, key) !== undefined)
  }

  nowhere(key: string): boolean {
    return this.cores.every((_, hub) => this.entry(hub, key) === undefined)
  }
}

const rule = { id: 'r', prefix: 'k', threshold: 1000, windowMs: 2000, minHoldMs: 300 }
const places = [
  ['one Redis', () => server.url],
  [
    'a Redis Cluster of three',
    () => `redis://${cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')}`,
  ],
] as const

describe.each(places)('hubs on %s', (_name, url) => {
  test('a key that is hot over all hubs and on none of them alone is hot everywhere, and cools everywhere', async () => {
    const hubs = await Hubs.start(url(), 3, [rule])
    for (const hub of [0, 1, 2]) hubs.report(hub, { k1: 400, k2: 200 })
    await waitFor(() => hubs.everywhere('k1'))
    expect(hubs.nowhere('k2')).toBe(true)
    const [first, second] = [hubs.entry(0, 'k1')!, hubs.entry(1, 'k1')!]
    expect(second.reason).toBe(first.reason)
    expect(first.reason).toMatch(/hot because rule `r`: 1,200 over 2 s/)
    // Nobody touches it any more: a timer of the board sees to it.
    await waitFor(() => hubs.nowhere('k1'))
    const kinds = async () => {
      await Promise.all(hubs.cores.map((core) => core.stored()))
      return (await hubs.cores[2]!.store.history({ limit: 10, kinds: ['hot', 'cooled'] })).map(
        ({ kind, key }) => `${kind} ${key}`,
      )
    }
    await waitFor(async () => (await kinds()).length === 2)
    // Decided once, told once, whichever hub it was.
    expect(await kinds()).toEqual(['cooled k1', 'hot k1'])
  })

  test('rules and switch are common: a change on one hub is in force on all', async () => {
    const hubs = await Hubs.start(url(), 2, [rule])
    await hubs.cores[1]!.putRule(parseRule({ ...rule, id: 's', prefix: 's' }), 'ann')
    await waitFor(() => hubs.cores[0]!.rule('s'))
    await hubs.cores[0]!.setOff(true, 'ann')
    await waitFor(() => hubs.cores[1]!.delivery.isOff)
    hubs.report(0, { k1: 1500 })
    await waitFor(() => hubs.everywhere('k1'))
    await hubs.cores[1]!.deleteRule('r', 'ann')
    await waitFor(() => hubs.nowhere('k1'))
    const audit = await hubs.cores[0]!.store.audit(10)
    expect(audit.map(({ what }) => what)).toEqual(['delete rule r', 'switch off', 'add rule s', 'add rule r'])
  })
})

describe.each(places)('the lane of hubs on %s', (_name, url) => {
  test('an invalidation of one hub reaches the sensors of all, once', async () => {
    const hubs = await Hubs.start(url(), 2, [])
    const heard: Invalidation[][] = hubs.cores.map(() => [])
    for (const [hub, core] of hubs.cores.entries()) {
      core.lane.join((bytes) => void heard[hub]!.push(decodeInvalidation(decodeFrame(bytes))))
    }
    const items = [{ key: 'k1', value: new Uint8Array([0, 255]) }]
    for (const core of hubs.cores) {
      core.lane.publish({ kind: 'keys', redisClusterId: 'main', database: 0, items })
    }
    await waitFor(() => heard.every((list) => list.length >= 2))
    expect(heard.map(({ length }) => length)).toEqual([2, 2])
    for (const [first, second] of heard) expect(second!.sequence).toBe(first!.sequence + 1)
    expect(heard[1]![1]).toMatchObject({ kind: 'keys', redisClusterId: 'main', database: 0 })
  })
})

test('a hub that dies takes neither decisions nor counts with it, and one that joins has the table at once', async () => {
  const hubs = await Hubs.start(server.url, 3, [{ ...rule, windowMs: 10_000 }])
  hubs.report(0, { k1: 1500, k2: 600 })
  await waitFor(() => hubs.everywhere('k1'))
  await hubs.cores[0]!.close()
  // What the dead hub counted is still in the window: 600 + 500.
  hubs.report(1, { k2: 500 })
  await waitFor(() => hubs.entry(1, 'k2') && hubs.entry(2, 'k2'))
  expect(hubs.entry(1, 'k1')).toBeDefined()
  const late = await hubs.add()
  expect([...late.delivery.entries()].map(({ key }) => key).sort()).toEqual(['k1', 'k2'])
  await waitFor(() => late.hubCount === 3, { what: 'the dead hub to be noticed' })
})

test('a hub that dies misses one tick of counts at most: what came since its last, and nothing before', async () => {
  const hubs = await Hubs.start(server.url, 2, [{ ...rule, windowMs: 60_000 }])
  // Its ticks come when the test says so, and in the end no more: as if it had been killed in between.
  const clock = new FakeClock()
  const intervals: (() => void)[] = []
  const timers: Timers = {
    setTimeout: () => ({ cancel() {} }),
    setImmediate: () => ({ cancel() {} }),
    setInterval: (run) => {
      intervals.push(run)
      return { cancel() {} }
    },
  }
  const mortal = await hubs.add({ runtime: { ...fakeRuntime(1, clock), timers } })
  await waitFor(() => hubs.cores.every((core) => core === mortal || core.hubCount === 3))
  const id = JSON.stringify(['main', 'r', '60000 on accesses', 'k1'])
  const heatKey = `{${hubs.prefix}:heat:${mortal.store.board!.bucketOf(id)}}:key:${id}`
  const onBoard = async () => {
    const lines = (await server.cli('HGETALL', heatKey)).split('\n')
    const at = lines.findIndex((line) => line.startsWith('hub-2.'))
    const window = at < 0 ? '{"a":[]}' : lines[at + 1]!
    return (JSON.parse(window) as { a: number[] }).a.reduce((sum, count) => sum + count, 0)
  }
  await waitFor(() => mortal.hubCount === 3)
  for (let ticks = 1; ticks <= 4; ticks++) {
    hubs.report(2, { k1: 200 })
    clock.advance(mortal.options.tickMs)
    const isTold = async () => {
      // Again and again, since a timer that comes while the turn before is not over does nothing; the tick is one.
      for (const run of intervals) run()
      return (await onBoard()) === 200 * ticks
    }
    await waitFor(isTold, { what: () => `the counts of tick ${ticks}` })
  }
  hubs.report(2, { k1: 150 })
  expect(await onBoard()).toBe(800)
  // Too little without the dead hub's 800, enough with them; its last 150 are what was lost.
  hubs.report(0, { k1: 190 })
  await waitFor(async () => (await server.cli('HGETALL', heatKey)).includes('hub-0.'))
  expect(hubs.entry(0, 'k1')).toBeUndefined()
  hubs.report(0, { k1: 20 })
  await waitFor(() => hubs.entry(0, 'k1') && hubs.entry(1, 'k1'))
  expect(hubs.entry(1, 'k1')!.reason).toContain('1,010')
})

test('a share is of what all hubs saw', async () => {
  const hubs = await Hubs.start(server.url, 2, [
    { id: 'r', prefix: 'k', windowMs: 5000, share: 0.3, shareOf: 'service', shareMinimum: 10 },
  ])
  // 40 % of one hub's accesses, 20 % of all.
  hubs.report(1, { other: 1000 })
  const told = async (hub: string) => {
    const lines = (await server.cli('HGETALL', `{${hubs.prefix}:hub}:hubs`)).split('\n')
    const [at, totals] = lines[lines.findIndex((line) => line.startsWith(hub)) + 1]!.split(/ (.*)/)
    return { at: Number(at), totals: totals! }
  }
  await waitFor(async () => (await told('hub-1')).totals.includes('1000'))
  const { at } = await told('hub-1')
  // Hub 0 has asked since.
  await waitFor(async () => (await told('hub-0')).at > at)
  hubs.report(0, { k1: 400, other: 600 })
  await waitFor(async () => (await told('hub-1')).at > at + 1000)
  expect(hubs.nowhere('k1')).toBe(true)
  hubs.report(0, { k2: 1500 })
  await waitFor(() => hubs.everywhere('k2'))
  expect(hubs.nowhere('k1')).toBe(true)
})

test('services of all hubs are told, wherever they were first seen to touch the key', async () => {
  const hubs = await Hubs.start(server.url, 2, [rule])
  hubs.report(0, { k1: 1500 }, 'shop')
  await waitFor(() => hubs.everywhere('k1'))
  expect(hubs.entry(0, 'k1', 'web')).toBeUndefined()
  hubs.report(1, { k1: 1 }, 'web')
  await waitFor(() => hubs.entry(0, 'k1', 'web') && hubs.entry(1, 'k1', 'web'))
})

test('a claim of one process is hot on all hubs', async () => {
  const hubs = await Hubs.start(server.url, 2, [rule])
  hubs.report(0, { k1: 5 })
  const core = hubs.cores[0]!
  const instance = core.fleet.hosts.find('shop', 'host-0', 'i-0', core.now())!
  core.keys.takeClaim(instance, { redisClusterId: 'main', key: 'k1', ruleId: 'r', heat: 1200 })
  await waitFor(() => hubs.everywhere('k1'))
})

test('a Redis that lost everything is written again from memory, and no hot key is lost meanwhile', async () => {
  const own = await startRedis()
  const hubs = await Hubs.start(own.url, 2, [{ ...rule, windowMs: 10_000, minHoldMs: 10_000 }])
  hubs.report(0, { k1: 700 })
  hubs.report(1, { k1: 700 })
  await waitFor(() => hubs.everywhere('k1'))
  let wasLost = false
  for (const core of hubs.cores) {
    core.delivery.join('shop', { onDelta: (delta) => void (wasLost ||= delta.removed.length > 0) })
  }
  await own.stop()
  await waitFor(() => hubs.cores.every((core) => core.alarms.list().some(({ id }) => id === 'board')))
  // While it is away, a hub goes by what it sees alone.
  hubs.report(0, { k2: 1500 })
  expect(hubs.entry(0, 'k2')?.reason).toContain('1,500')
  const again = await own.restart()
  await waitFor(() => hubs.cores.every((core) => core.alarms.list().every(({ id }) => id !== 'board')))
  await waitFor(() => hubs.everywhere('k2'))
  await waitFor(() => hubs.cores.some((core) => core.alarms.list().some(({ id }) => id === 'board-reset')))
  expect(wasLost).toBe(false)
  const late = await hubs.add()
  expect(late.rules().rules.map(({ id }) => id)).toEqual(['r'])
  await waitFor(() => [...late.delivery.entries()].length === 2)
  await Promise.all(cores.splice(0).map((core) => core.close()))
  await again.stop()
})

test.each([
  ['a rule', (core: HubCore) => core.putRule(parseRule({ ...rule, id: 'new' }), 'test').then(() => true)],
  ['the switch', (core: HubCore) => core.setOff(true, 'test')],
])('a change of %s in a Redis that lost everything takes no rule with it', async (_, change) => {
  const prefix = `emptied-${process.pid}-${runs++}`
  const store = await openRedisStore(server.url, { prefix })
  const core = await HubCore.open(store, { hubId: 'hub', loadOf: () => 0 })
  cores.push(core)
  await core.putRule(parseRule(rule), 'test')
  await server.cli('DEL', `{${prefix}:hub}:state`, `{${prefix}:hub}:rules`)
  // It has not looked at the store since.
  const isMade = await change(core).catch((error: Error & { code?: string }) => error.code)
  expect(isMade).toBeOneOf([false, 'FB_STORE_AWAY'])
  core.start()
  // Once the rules are there again it can be made.
  await waitFor(() => change(core).catch(() => false))
  const { rules, isOff } = await store.load()
  expect(rules.map(({ id }) => id)).toEqual(isOff ? ['r'] : ['new', 'r'])
  expect(core.rules().rules).toHaveLength(rules.length)
})

test('a hub that died is forgotten also where the clock of Redis was set back', async () => {
  let now = 1_700_000_000_000
  const store = await openRedisStore(server.url, { prefix: `back-${process.pid}`, testClock: { now: () => now } })
  const others = async () => [...(await store.board.sync('left', {})).otherHubs.keys()]
  await store.board.sync('dead', {})
  now -= 60_000
  expect(await others()).toEqual(['dead'])
  now += 3001
  expect(await others()).toEqual([])
  await store.close()
})

test('a key that nobody touches any more cools also where the clock of Redis was set back', async () => {
  let stepMs = 0
  const testClock = { now: () => systemRuntime.clock.now() - stepMs }
  const hubs = new Hubs(server.url)
  const store = await openRedisStore(server.url, { prefix: hubs.prefix, testClock })
  const core = await HubCore.open(store, { hubId: 'hub', loadOf: () => 0 })
  core.start()
  cores.push(core)
  hubs.cores.push(core)
  await core.putRule(parseRule(rule), 'test')
  hubs.report(0, { k1: 1500 })
  await waitFor(() => hubs.everywhere('k1'))
  stepMs = 3_600_000
  await waitFor(() => hubs.nowhere('k1'))
})

test('a key that the board lost is held no longer than its grace where the clock of Redis was set back', async () => {
  let now = 1_700_000_000_000
  const store = await openRedisStore(server.url, { prefix: `held-${process.pid}`, testClock: { now: () => now } })
  const { board } = store
  const settings = { hubId: 'hub', entryTtlMs: 60_000, graceMs: 5000, recheckMs: 500 }
  const post = {
    id: 'k',
    windowMs: 1000,
    sliceMs: 100,
    headAgeMs: 0,
    accesses: [],
    levels: [{ measure: 'accesses', enter: 10, exit: 5 }],
    minHoldMs: 1000,
    strategies: ['{"strategy":"LocalCache"}'],
    services: [],
    settleMs: 100,
  } as const
  const isHot = async () => (await board.load(0)).states.has('k')
  const adopt = { level: 1, since: now, strategy: post.strategies[0] }
  await board.post(0, settings, [{ ...post, adopt }])
  now -= 60_000
  await board.post(0, settings, [{ ...post, isDue: true }])
  expect(await isHot()).toBe(true)
  now += post.minHoldMs + settings.graceMs
  await board.post(0, settings, [{ ...post, isDue: true }])
  expect(await isHot()).toBe(false)
  await store.close()
})

test('a hub that missed a decision of an outbox loads the whole bucket', async () => {
  const hubs = await Hubs.start(server.url, 1, [rule])
  hubs.report(0, { k1: 1500 })
  await waitFor(() => hubs.everywhere('k1'))
  const { board } = hubs.cores[0]!.store
  const id = (key: string) => JSON.stringify(['main', 'r', '2000 on accesses', key])
  const key = (name: string) => `{${hubs.prefix}:heat:${board!.bucketOf(id('k1'))}}:${name}`
  // As if k2 had become hot in a decision that was trimmed before this hub read it.
  await server.cli('HSET', key('hot'), id('k2'), await server.cli('HGET', key('hot'), id('k1')))
  await server.cli('INCR', key('sequence'))
  await waitFor(() => hubs.nowhere('k1'))
  await waitFor(() => hubs.everywhere('k2'))
})

test('keys at half their threshold, however many, do not take the place of a hot one', async () => {
  const hubs = await Hubs.start(server.url, 1, [{ ...rule, windowMs: 60_000 }])
  hubs.report(0, Object.fromEntries(Array.from({ length: 20_500 }, (_, index) => [`k-luke-${index}`, 600])))
  hubs.report(0, { k1: 1500 })
  await waitFor(() => hubs.everywhere('k1'), { timeoutMs: 60_000 })
  // The claim of a process too, of which hardly anything was reported yet.
  hubs.report(0, { k2: 5 })
  const core = hubs.cores[0]!
  const instance = core.fleet.hosts.find('shop', 'host-0', 'i-0', core.now())!
  core.keys.takeClaim(instance, { redisClusterId: 'main', key: 'k2', ruleId: 'r', heat: 1200 })
  await waitFor(() => hubs.everywhere('k2'), { timeoutMs: 60_000 })
}, 130_000)
