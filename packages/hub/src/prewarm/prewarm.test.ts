import { join } from 'node:path'
import { FakeClock, fakeRuntime, temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { expandKeys, parseAt } from './expand-keys.ts'
import { Prewarmer, type PrewarmJob } from './prewarmer.ts'

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

test('a scheduled job waits for its time, survives a restart, writes its values first, and can be cancelled', async () => {
  const clock = new FakeClock()
  const file = join(temporaryFolder('prewarm'), 'jobs.json')
  const done: string[] = []
  const make = () =>
    new Prewarmer({
      warm: ({ keys }) => {
        done.push(`warm ${keys}`)
        return { warmed: keys.length, unmatched: [] }
      },
      writeValue: async (_, key, value) => void done.push(`write ${key}=${value}`),
      file,
      onFailure: () => {},
      runtime: fakeRuntime(1, clock),
    })
  const first = make()
  await first.add(job({ at: clock.now() + 60_000, values: { product_1: 'v' } }))
  const { job: other } = await first.add(job({ at: clock.now() + 90_000, keys: ['product_2'] }))
  first.close()
  const second = make()
  expect(second.jobs().map(({ keys }) => keys)).toEqual([['product_1'], ['product_2']])
  await clock.advanceAsync(59_000, 1000)
  expect(done).toEqual([])
  await clock.advanceAsync(2000, 1000)
  expect(done).toEqual(['write product_1=v', 'warm product_1'])
  expect(second.cancel(other.id)).toBe(true)
  await clock.advanceAsync(60_000, 1000)
  expect(done).toHaveLength(2)
  expect(second.jobs()).toEqual([])
})
