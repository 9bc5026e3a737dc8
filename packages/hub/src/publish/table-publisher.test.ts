import type { ConfigCentre } from '@firebreak/centre'
import type { PublishedTable } from '@firebreak/core'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { TablePublisher } from './table-publisher.ts'

/** What is written where, by a publisher on a fake clock. */
async function publish(entryTtlMs: number) {
  const clock = new FakeClock()
  const runtime = fakeRuntime(1, clock)
  const rule = { id: 'hot', prefix: 'hot-', threshold: 100, minHoldMs: 3_600_000 }
  const hub = await TestCore.open([rule], { entryTtlMs }, undefined, clock)
  const written: (PublishedTable & { readonly path: string })[] = []
  const centre: ConfigCentre = {
    name: 'a list',
    root: '/tables',
    maxBytes: 1_000_000,
    read: async () => undefined,
    write: async (path, text) => void written.push({ path, ...(JSON.parse(text) as PublishedTable) }),
    watch: () => ({ isLive: true, close() {} }),
    close: async () => {},
  }
  const standing = { isHeard: true, isAlone: false }
  const { delivery, alarms } = hub.core
  const publisher = new TablePublisher({ centre, runtime, delivery, alarms, standing, entryTtlMs })
  publisher.start()
  const pass = async (ms: number) => {
    for (let passed = 0; passed < ms; passed += 100) {
      clock.advance(100)
      await new Promise(setImmediate)
    }
  }
  return { hub, written, pass }
}

test.each([6000, 60_000, 600_000])(
  'with entries that live %d ms a table is good for so long, and is renewed well before',
  async (ms) => {
    const { hub, written, pass } = await publish(ms)
    hub.report({ 'hot-1': 500 })
    await pass(Math.min(ms, 60_000))
    expect(written.length).toBeGreaterThan(2)
    expect(written.every(({ writtenAt, validUntil }) => validUntil - writtenAt === ms)).toBe(true)
    const gaps = written.slice(1).map(({ writtenAt }, index) => writtenAt - written[index]!.writtenAt)
    expect(Math.max(...gaps)).toBeLessThanOrEqual(Math.min(20_000, ms / 3) + 200)
  },
)

test('a service that only a reader has named is written nowhere, until it has a sensor or a hot key', async () => {
  const { hub, written, pass } = await publish(60_000)
  hub.core.delivery.view('slip')
  hub.core.delivery.snapshot('shop')
  await pass(500)
  expect(written).toEqual([])
  hub.report({ 'hot-1': 500 })
  hub.listen('web')
  await pass(500)
  expect(new Set(written.map(({ path }) => path))).toEqual(new Set(['/tables/shop', '/tables/web']))
})
