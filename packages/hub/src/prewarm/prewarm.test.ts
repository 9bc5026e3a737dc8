import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { FakeClock, fakeRuntime, temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { HubStore } from '../store/hub-store.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { SqliteStore } from '../store/sqlite-store.ts'
import { TestCore } from '../testing/test-core.ts'
import { expandKeys, parseAt } from './expand-keys.ts'
import type { PrewarmJob } from './prewarm-job.ts'
import { importJobs, Prewarmer } from './prewarmer.ts'

const rule = {
  id: 'product',
  prefix: 'product_',
  threshold: 1000,
  windowMs: 1000,
  minHoldMs: 1000,
  strategy: 'LocalCache',
}
const job = (changes: Partial<PrewarmJob> = {}): Omit<PrewarmJob, 'id'> => ({
  redisClusterId: 'main',
  keys: ['product_1'],
  services: ['shop'],
  at: 0,
  forMs: 30_000,
  values: {},
  who: 'ann',
  ...changes,
})

test('ranges of keys and times are read as people write them', () => {
  expect(expandKeys(['product_8..11', 'x', 'a01..03b'])).toEqual([
    'product_8',
    'product_9',
    'product_10',
    'product_11',
    'x',
    'a01b',
    'a02b',
    'a03b',
  ])
  expect(() => expandKeys(['a9..1'])).toThrow(/a9\.\.1/)
  expect(() => expandKeys(['a1..99999'])).toThrow(/10000/)
  const noon = new Date(2026, 5, 1, 12, 0, 0).getTime()
  expect(new Date(parseAt('19:58', noon)).getHours()).toBe(19)
  expect(parseAt('11:00', noon)).toBeGreaterThan(noon)
  expect(() => parseAt('soon', noon)).toThrow(/"soon"/)
})

test('a pre-warmed key is hot at once for the named service, stays so without an access, and then cools', async () => {
  const hub = await TestCore.open([rule])
  const result = hub.core.keys.prewarm({ ...job({ keys: ['product_1', 'other'] }), id: 'j' })
  expect(result).toEqual({ warmed: 1, unmatched: ['other'] })
  const names = () => [...hub.core.delivery.entries()].map(({ key }) => key)
  expect(names()).toEqual(['product_1'])
  expect(hub.core.delivery.snapshot('shop').entries[0]).toMatchObject({ key: 'product_1', reason: 'pre-warmed by ann' })
  hub.clock.advance(25_000)
  expect(names()).toEqual(['product_1'])
  hub.clock.advance(10_000)
  expect(names()).toEqual([])
})

test('a pre-warming that is ended leaves a key hot by its own heat alone, at any hub, and is not given to who comes later', async () => {
  const hub = await TestCore.open([rule])
  hub.core.keys.prewarm({ ...job({ keys: ['product_1', 'product_2'] }), id: 'j' })
  const names = () => [...hub.core.delivery.entries()].map(({ key }) => key).sort()
  hub.clock.advance(2000)
  hub.keepReporting(2000, { product_2: 300 })
  expect(names()).toEqual(['product_1', 'product_2'])
  for (const key of ['product_1', 'product_2']) expect(hub.core.keys.endPrewarm('main', key, 'bob')).toBe(true)
  hub.keepReporting(3000, { product_2: 300 })
  expect(names()).toEqual(['product_2'])
  expect(hub.core.keys.endPrewarm('main', 'product_1', 'bob')).toBe(false)
  expect(hub.core.keys.endPrewarm('main', 'product_9', 'bob')).toBe(false)
  const warmed: PrewarmJob[] = []
  const services = ['shop']
  const prewarmer = new Prewarmer({
    store: new MemoryStore(),
    services: () => services,
    warm: (given) => {
      warmed.push(given)
      return { warmed: 1, unmatched: [] }
    },
    onFailure: () => {},
    onUnreached: () => {},
    runtime: fakeRuntime(1, hub.clock),
  })
  await prewarmer.add(job({ keys: ['product_1', 'product_2'], services: [], at: prewarmer.now() }))
  prewarmer.release('main', 'product_1')
  services.push('web')
  prewarmer.start()
  hub.clock.advance(1000)
  expect(warmed.map(({ keys, services: to }) => [keys, to])).toEqual([
    [['product_1', 'product_2'], []],
    [['product_2'], ['web']],
  ])
  prewarmer.close()
})

test('the time asked for holds although the key went up a level and down again meanwhile', async () => {
  const levels = [
    { threshold: 1000, strategies: ['LocalCache'] },
    { threshold: 5000, strategies: ['Observe'] },
  ]
  const { threshold: _, strategy: __, ...rest } = rule
  const hub = await TestCore.open([{ ...rest, levels }])
  hub.core.keys.prewarm({ ...job(), id: 'j' })
  hub.keepReporting(1000, { product_1: 600 })
  expect(hub.entry('product_1')?.strategy.strategy).toBe('Observe')
  hub.clock.advance(20_000)
  expect(hub.entry('product_1')).toBeDefined()
  hub.clock.advance(10_000)
  expect(hub.entry('product_1')).toBeUndefined()
})

/** A hub's prewarmer on a store; what it does is noted under its name. */
function makePrewarmer(store: HubStore, clock: FakeClock, done: string[], name = ''): Prewarmer {
  const prewarmer = new Prewarmer({
    store,
    warm: ({ keys }) => {
      done.push(`${name}warm ${keys}`)
      return { warmed: keys.length, unmatched: [] }
    },
    writeValue: async (_, key, value) => {
      if (value === 'refused') throw new Error('no')
      done.push(`${name}write ${key}=${value}`)
    },
    services: () => ['shop'],
    onFailure: ({ keys }) => void done.push(`${name}failed ${keys}`),
    onUnreached: (jobs) => void done.push(`${name}unreached ${jobs.length}`),
    runtime: fakeRuntime(1, clock),
  })
  prewarmer.start()
  return prewarmer
}

test('a scheduled job waits for its time, survives a restart, writes its values first, and can be cancelled', async () => {
  const clock = new FakeClock()
  const file = join(temporaryFolder('prewarm'), 'hub.sqlite')
  const done: string[] = []
  const store = new SqliteStore(file)
  const first = makePrewarmer(store, clock, done)
  await first.add(job({ at: clock.now() + 60_000, values: { product_1: 'v' } }))
  const { job: other } = await first.add(job({ at: clock.now() + 90_000, keys: ['product_2'] }))
  await first.add(job({ at: clock.now() + 65_000, keys: ['product_3'], values: { product_3: 'refused' } }))
  first.close()
  await store.close()
  const second = makePrewarmer(new SqliteStore(file), clock, done)
  const keys = async () => (await second.jobs()).map(({ keys }) => keys.join())
  expect(await keys()).toEqual(['product_1', 'product_3', 'product_2'])
  await clock.advanceAsync(59_000, 1000)
  expect(done).toEqual([])
  await clock.advanceAsync(2000, 1000)
  expect(done).toEqual(['write product_1=v', 'warm product_1'])
  await clock.advanceAsync(10_000, 1000)
  expect(done.slice(2)).toEqual(['failed product_3'])
  expect(await second.cancel(other.id)).toBe(true)
  await clock.advanceAsync(60_000, 1000)
  expect(done).toHaveLength(3)
  expect(await keys()).toEqual([])
  second.close()
})

test('of two hubs on one store one runs a job, the other where the first stopped after it took it', async () => {
  const clock = new FakeClock()
  const store = new MemoryStore()
  const done: string[] = []
  const one = makePrewarmer(store, clock, done, 'one: ')
  await one.add(job({ at: clock.now() + 1000 }))
  const two = makePrewarmer(store, clock, done, 'two: ')
  await clock.advanceAsync(60_000, 500)
  expect(done).toEqual(['one: warm product_1'])
  const lost = await two.add(job({ at: clock.now() + 1000, keys: ['product_2'], forMs: 60_000 }))
  one.close()
  // Taken by a third, which is killed before it is done.
  const [taken] = await store.takeJobs(clock.now() + 1000, 30_000)
  expect(taken!.id).toBe(lost.job.id)
  await clock.advanceAsync(29_000, 500)
  expect(done).toHaveLength(1)
  await clock.advanceAsync(4000, 500)
  expect(done.slice(1)).toEqual(['two: warm product_2'])
  two.close()
})

test('jobs that an earlier version kept in a file of its own are taken over', async () => {
  const file = join(temporaryFolder('prewarm'), 'prewarm.json')
  writeFileSync(file, JSON.stringify([{ ...job({ at: 5 }), id: 'old' }]))
  const store = new MemoryStore()
  await importJobs(file, store)
  expect((await store.jobs()).map(({ id }) => id)).toEqual(['old'])
  expect(existsSync(file)).toBe(false)
  await importJobs(file, store)
})

const laddered = {
  id: 'ladder',
  prefix: 'product_',
  windowMs: 1000,
  minHoldMs: 1000,
  levels: [
    { threshold: 10, strategy: 'Observe' },
    { threshold: 100_000, strategies: ['Observe', 'LocalCache'] },
  ],
}

test('a key is warmed at the first level that does something, and held there through few reads until its time is over', async () => {
  const hub = await TestCore.open([laddered])
  hub.core.keys.prewarm({ ...job(), id: 'j' })
  const strategy = () => hub.entry('product_1')?.strategy.strategy
  expect(strategy()).toBe('LocalCache')
  hub.keepReporting(25_000, { product_1: 5 })
  expect(strategy()).toBe('LocalCache')
  hub.keepReporting(10_000, { product_1: 5 })
  expect(strategy()).toBe('Observe')
})

test('each service gets the key by its own rule, and one whose rule does nothing is left out', async () => {
  const copies = { strategy: 'RedundantKeys' }
  const hub = await TestCore.open([
    rule,
    { ...rule, id: 'web', service: 'web', priority: 5, strategy: copies },
    { ...rule, id: 'batch', service: 'batch', priority: 5, strategy: 'Observe' },
  ])
  hub.core.keys.prewarm({ ...job({ services: ['shop', 'web', 'batch'] }), id: 'j' })
  const of = (service: string) => hub.core.delivery.snapshot(service).entries.map(({ strategy }) => strategy.strategy)
  expect([of('shop'), of('web'), of('batch')]).toEqual([['LocalCache'], ['RedundantKeys'], []])
})

test('a job with a schedule comes again at its next scheduled time, in its time zone, until it is cancelled', async () => {
  const clock = new FakeClock(Date.parse('2026-03-06T01:00Z'))
  const store = new MemoryStore()
  const ran: number[] = []
  const prewarmer = new Prewarmer({
    store,
    warm: () => {
      ran.push(clock.now())
      return { warmed: 1, unmatched: [] }
    },
    services: () => ['shop'],
    onFailure: (_, error) => expect.fail(error.message),
    onUnreached: () => expect.fail('it reached nobody'),
    runtime: fakeRuntime(1, clock),
  })
  prewarmer.start()
  const schedule = '58 9 * * fri in Asia/Shanghai'
  await prewarmer.add(job({ at: Date.parse('2026-03-06T01:58Z'), forMs: 3_600_000, schedule }))
  for (let hour = 0; hour < 24 * 15; hour++) {
    for (let step = 0; step < 4; step++) {
      clock.advance(900_000)
      for (let turn = 0; turn < 10; turn++) await Promise.resolve()
    }
  }
  expect(ran.map((at) => new Date(at).toISOString().slice(0, 10))).toEqual(['2026-03-06', '2026-03-13', '2026-03-20'])
  const [next] = await prewarmer.jobs()
  expect(new Date(next!.at).toISOString()).toBe('2026-03-27T01:58:00.000Z')
  await prewarmer.cancel(next!.id)
  expect(await prewarmer.jobs()).toEqual([])
  prewarmer.close()
})

/** A prewarmer whose services come and go; `warmed` has whom each turn was for, and for how long. */
function makeWaiting(clock: FakeClock, store: HubStore = new MemoryStore()) {
  const services: string[] = []
  const warmed: string[] = []
  const unreached: number[] = []
  const failures: string[] = []
  const prewarmer = new Prewarmer({
    store,
    warm: ({ keys, services, forMs }) => {
      warmed.push(`${keys} for ${services.join() || 'all'} ${forMs}`)
      return { warmed: keys.length, unmatched: [] }
    },
    services: () => services,
    onFailure: (_, error) => void failures.push(error.message),
    onUnreached: (jobs) => void unreached.push(jobs.length),
    runtime: fakeRuntime(1, clock),
  })
  prewarmer.start()
  return { prewarmer, services, warmed, unreached, failures, store }
}

test('a job that comes due while nobody is connected is told, and reaches who comes until its time is over', async () => {
  const clock = new FakeClock()
  const { prewarmer, services, warmed, unreached } = makeWaiting(clock)
  await prewarmer.add(job({ at: clock.now() + 1000, services: [], forMs: 60_000 }))
  await prewarmer.add(job({ at: clock.now() + 1000, keys: ['product_2'], forMs: 5000 }))
  await clock.advanceAsync(10_000, 500)
  expect(warmed).toEqual(['product_1 for all 60000', 'product_2 for shop 5000'])
  expect(unreached).toEqual([1])
  services.push('shop')
  await clock.advanceAsync(1000, 500)
  expect(warmed.slice(2)).toEqual([expect.stringMatching(/^product_1 for shop 50\d00$/)])
  expect(unreached).toEqual([1, 0])
  services.push('web')
  await clock.advanceAsync(1000, 500)
  services.push('late')
  await clock.advanceAsync(60_000, 500)
  expect(warmed.slice(3)).toEqual([
    expect.stringMatching(/^product_1 for web 49\d00$/),
    expect.stringMatching(/for late/),
  ])
  services.push('too late')
  await clock.advanceAsync(2000, 500)
  expect(warmed).toHaveLength(5)
  prewarmer.close()
})

test('a job that cannot be carried out for a service that came later is told, and stops no other job', async () => {
  const clock = new FakeClock()
  const services = ['shop']
  const warmed: string[] = []
  const failures: string[] = []
  const prewarmer = new Prewarmer({
    store: new MemoryStore(),
    warm: ({ keys, services }) => {
      if (services.includes('broken')) throw new Error('its rule is gone')
      warmed.push(...keys)
      return { warmed: keys.length, unmatched: [] }
    },
    services: () => services,
    onFailure: (_, error) => void failures.push(error.message),
    onUnreached: () => {},
    runtime: fakeRuntime(1, clock),
  })
  prewarmer.start()
  await prewarmer.add(job({ at: clock.now() + 1000, services: [], forMs: 60_000 }))
  await prewarmer.add(job({ at: clock.now() + 10_000, keys: ['product_2'] }))
  await clock.advanceAsync(2000, 500)
  services.push('broken')
  await clock.advanceAsync(10_000, 500)
  expect(warmed).toEqual(['product_1', 'product_2'])
  expect(failures).toEqual(['its rule is gone'])
  prewarmer.close()
})

test('a job that a hub finds late is carried out for the rest of its time, or told to be over, and comes again all the same', async () => {
  const clock = new FakeClock(Date.parse('2026-03-06T00:00Z'))
  const store = new MemoryStore()
  const at = Date.parse('2026-03-06T01:58Z')
  const schedule = '58 9 * * fri in Asia/Shanghai'
  await store.saveJob({ ...job({ at, forMs: 600_000, schedule }), id: 'late' })
  await store.saveJob({ ...job({ at, forMs: 60_000, keys: ['product_2'], schedule }), id: 'over' })
  clock.advance(at + 120_000 - clock.now())
  const { prewarmer, warmed, failures } = makeWaiting(clock, store)
  await clock.advanceAsync(1000, 500)
  expect(warmed).toEqual(['product_1 for shop 479500'])
  expect(failures).toEqual([expect.stringContaining('2026-03-06T01:58:00.000Z, passed')])
  expect((await store.jobs()).map(({ at }) => new Date(at).toISOString())).toEqual(
    Array.from({ length: 2 }, () => '2026-03-13T01:58:00.000Z'),
  )
  prewarmer.close()
})

test('a job that is cancelled while it runs does not come again', async () => {
  const clock = new FakeClock()
  const store = new MemoryStore()
  const { promise, resolve } = Promise.withResolvers<void>()
  const prewarmer = new Prewarmer({
    store,
    warm: () => ({ warmed: 1, unmatched: [] }),
    writeValue: () => promise,
    services: () => ['shop'],
    onFailure: (_, error) => expect.fail(error.message),
    onUnreached: () => {},
    runtime: fakeRuntime(1, clock),
  })
  prewarmer.start()
  const added = await prewarmer.add(
    job({ at: clock.now() + 1000, schedule: '* * * * * in UTC', values: { product_1: 'v' } }),
  )
  await clock.advanceAsync(2000, 500)
  expect(await prewarmer.cancel(added.job.id)).toBe(true)
  resolve()
  await clock.advanceAsync(1000, 500)
  expect(await prewarmer.jobs()).toEqual([])
  prewarmer.close()
})
