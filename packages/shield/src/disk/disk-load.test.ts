import { join } from 'node:path'
import { defaultLocalCache, systemRuntime } from '@firebreak/core'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { HotKey } from '../cache/hot-key.ts'
import { KeptKeys, TouchedKeys } from '../cache/key-lists.ts'
import { readCommand } from '../cache/read-command.ts'
import { ReplyCaches } from '../cache/reply-caches.ts'
import { KeySpace } from '../gate/key-space.ts'
import { Trouble } from '../trouble/trouble.ts'
import { LaneLease } from '../watcher/lease.ts'
import type { ReadingHandler, TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'
import { DiskTier } from './disk-tier.ts'

/** A hot key backed by a disk, whose watcher answers when the test tells it to. */
function setUp() {
  const clock = { now: 1000 }
  const reads: ReadingHandler[] = []
  const lease = { aliveUntil: Number.POSITIVE_INFINITY }
  const watcher = {
    node: 'n',
    canRead: true,
    lease,
    state: 'live',
    read: (_: number, __: Uint8Array, ___: Uint8Array, handler: ReadingHandler) => void reads.push(handler),
  } as unknown as TrackingWatcher
  const tier = new DiskTier({ path: join(temporaryFolder('disk'), 'tier') }, new Trouble(() => {}))
  onTestFinished(() => tier.close())
  const space = new KeySpace('', 0, {} as Upstream)
  const hot = new HotKey(
    'k',
    space,
    { strategy: defaultLocalCache, ruleId: 'r', until: 1e12, isClaim: false },
    {
      redisClusterId: 'main',
      processId: 'test',
      runtime: { ...systemRuntime, clock: { now: () => clock.now }, random: () => 0 },
      trouble: new Trouble(() => {}),
      isActive: () => true,
      watchers: { at: () => watcher },
      guards: { leaseMs: 300, lane: new LaneLease(), fallbackTtlMs: 100 },
      caches: new ReplyCaches(),
      kept: new KeptKeys(),
      touched: new TouchedKeys(),
      limits: { of: () => undefined, leave: () => {} },
      diskTier: tier,
    },
  )
  const answer = (text: string) =>
    reads.shift()!({ reply: Buffer.from(`$${text.length}\r\n${text}\r\n`), pttlMs: -1 }, clock.now)
  const seen: (string | undefined)[] = []
  const load = () =>
    hot.load(get, clock.now, (reply) => seen.push(reply && Buffer.from(reply.bytes).toString().split('\r\n')[1]))
  return { hot, tier, clock, lease, reads, answer, load, seen }
}

const get = readCommand('GET', ['k'], 0)

test('a reply evicted from memory is read from disk, for all who wait at once, and is in memory again', async () => {
  const { hot, reads, answer, load, seen, clock } = setUp()
  load()
  answer('v')
  hot.evict()
  expect(hot.hit('GET', clock.now)).toBeUndefined()
  expect(hot.hasReplies).toBe(true)
  load()
  load()
  await waitFor(() => seen.length === 3)
  expect(seen).toEqual(['v', 'v', 'v'])
  expect(reads).toHaveLength(0)
  expect(hot.hit('GET', clock.now)).toBeDefined()
  expect([hot.localHits, hot.redisReads]).toEqual([3, 1])
})

test('a reply that is dropped, expires or loses its lease while the disk is read is read from Redis', async () => {
  const ends: ((set: ReturnType<typeof setUp>) => void)[] = [
    ({ hot }) => hot.dropReplies(),
    ({ tier }) => tier.distrust(),
    ({ clock }) => void (clock.now += 60_000),
    ({ lease, clock }) => void (lease.aliveUntil = clock.now),
  ]
  for (const end of ends) {
    const set = setUp()
    set.load()
    set.answer('old')
    set.hot.evict()
    set.load()
    end(set)
    await waitFor(() => set.reads.length === 1)
    set.answer('new')
    expect(set.seen).toEqual(['old', 'new'])
  }
})

test('an own write while the disk is read sends waiting readers to their own connection', async () => {
  const { hot, reads, answer, load, seen } = setUp()
  load()
  answer('old')
  hot.evict()
  load()
  hot.beginWrite()
  expect(seen).toEqual(['old', undefined])
  hot.pendingWrites--
  // Nobody waits, so nothing is read.
  load()
  await waitFor(() => reads.length === 1)
  answer('own')
  expect(seen).toEqual(['old', undefined, 'own'])
})

test('a reloaded reply replaces the one on disk', async () => {
  const { hot, answer, load, seen, clock, reads } = setUp()
  load()
  answer('old')
  hot.evict()
  load()
  await waitFor(() => seen.length === 2)
  // It is about to expire: one reader reloads it.
  clock.now += 50_000
  expect(hot.hit('GET', clock.now)).toBeDefined()
  await waitFor(() => reads.length === 1)
  answer('new')
  hot.evict()
  load()
  await waitFor(() => seen.length === 3)
  expect(seen).toEqual(['old', 'old', 'new'])
})
