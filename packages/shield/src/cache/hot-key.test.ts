import { type BoundedCache, defaultLocalCache, type Strategy, systemRuntime } from '@firebreak/core'
import { expect, test } from 'vitest'
import { KeySpace } from '../gate/key-space.ts'
import type { KeyLimit } from '../limit/key-limit.ts'
import { Trouble } from '../trouble/trouble.ts'
import { LaneLease } from '../watcher/lease.ts'
import type { ReadingHandler, TrackingWatcher } from '../watcher/tracking-watcher.ts'
import type { Upstream } from '../watcher/upstream.ts'
import type { CachedReply } from './cached-reply.ts'
import { HotKey } from './hot-key.ts'
import { KeptKeys, TouchedKeys } from './key-lists.ts'
import { readCommand } from './read-command.ts'
import { ReplyCaches } from './reply-caches.ts'
import type { SharedByKeys } from './shared-by-keys.ts'

/** A hot key whose watcher answers when the test says so. */
function setUp(strategy: Strategy = defaultLocalCache, rightsMs?: number) {
  let now = 1000
  let rolled = 0
  const reads: ReadingHandler[] = []
  const lease = { aliveUntil: Number.POSITIVE_INFINITY }
  const watched = { node: 'n', canRead: true, lease, state: 'live' }
  const watcher = Object.assign(watched, {
    read: (_: number, __: Uint8Array, ___: Uint8Array, handler: ReadingHandler) => void reads.push(handler),
  }) as unknown as TrackingWatcher
  const space = new KeySpace('', 0, { rightsMs } as Upstream)
  const shared: SharedByKeys = {
    redisClusterId: 'main',
    processId: 'test',
    runtime: { ...systemRuntime, clock: { now: () => now }, random: () => rolled },
    trouble: new Trouble(() => {}),
    watchers: { at: () => watcher },
    guards: { leaseMs: 300, lane: new LaneLease(), fallbackTtlMs: 100 },
    caches: new ReplyCaches(),
    kept: new KeptKeys(),
    touched: new TouchedKeys(),
    limits: { of: () => ({ keepsLast: true }) as KeyLimit },
    diskTier: undefined,
  }
  const make = (name: string) => new HotKey(name, space, { strategy, ruleId: 'r', until: 1e12, isClaim: false }, shared)
  const answer = (text: string, pttlMs = -1) =>
    reads.shift()!({ reply: Buffer.from(`$${text.length}\r\n${text}\r\n`), pttlMs }, now)
  return {
    hot: make('k'),
    make,
    reads,
    answer,
    lease,
    watched,
    at: (time: number) => (now = time),
    roll: (value: number) => (rolled = value),
    now: () => now,
  }
}

const get = readCommand('GET', ['k'], 0)
const text = (reply: CachedReply | undefined) => (reply === undefined ? undefined : Buffer.from(reply.bytes).toString())

test('readers of one command share one load, other commands have their own, and all hang on one entry', () => {
  const { hot, reads, answer, now } = setUp()
  const seen: (string | undefined)[] = []
  for (let count = 0; count < 3; count++) hot.load(get, now(), (reply) => seen.push(text(reply)))
  hot.load(readCommand('STRLEN', ['k'], 0), now(), () => {})
  expect(reads).toHaveLength(2)
  answer('v')
  expect(seen).toEqual(['$1\r\nv\r\n', '$1\r\nv\r\n', '$1\r\nv\r\n'])
  answer('1')
  expect(hot.replyCount).toBe(2)
  hot.dropReplies()
  expect(hot.hit('GET', now())).toBeUndefined()
  expect(hot.hit('STRLEN', now())).toBeUndefined()
})

test('a load that a change has overtaken is handed to its readers, not kept, and not joined by later ones', () => {
  const { hot, reads, answer, now } = setUp()
  const seen: (string | undefined)[] = []
  hot.load(get, now(), (reply) => seen.push(text(reply)))
  hot.drop()
  hot.load(get, now(), (reply) => seen.push(text(reply)))
  expect(reads).toHaveLength(2)
  answer('old')
  expect(hot.hit('GET', now())).toBeUndefined()
  answer('new')
  expect(seen).toEqual(['$3\r\nold\r\n', '$3\r\nnew\r\n'])
  expect(text(hot.hit('GET', now()))).toBe('$3\r\nnew\r\n')
})

test('an own write sends those who wait to Redis before it, and nobody loads until it is acknowledged', () => {
  const { hot, answer, now } = setUp()
  const seen: (string | undefined)[] = []
  hot.load(get, now(), (reply) => seen.push(text(reply)))
  hot.pendingWrites++
  hot.abandon()
  expect(seen).toEqual([undefined])
  expect(hot.load(get, now(), () => {})).toBe(false)
  answer('late')
  expect(seen).toHaveLength(1)
  hot.pendingWrites--
  expect(hot.hit('GET', now())).toBeUndefined()
  expect(hot.load(get, now(), () => {})).toBe(true)
})

test('nothing is served past its time or its lease', () => {
  const { hot, answer, lease, now } = setUp()
  hot.load(get, now(), () => {})
  answer('v', 50)
  expect(hot.hit('GET', now() + 49)).toBeDefined()
  expect(hot.hit('GET', now() + 50)).toBeUndefined()
  lease.aliveUntil = now() + 10
  expect(hot.hit('GET', now() + 9)).toBeDefined()
  expect(hot.hit('GET', now() + 10)).toBeUndefined()
})

test('what was kept is not served again once a reader was sent to Redis because no lease was held', () => {
  const strlen = readCommand('STRLEN', ['k'], 0)
  for (const isWaiting of [false, true]) {
    const { hot, reads, answer, lease, watched, now } = setUp()
    hot.load(get, now(), () => {})
    answer('v1')
    hot.load(strlen, now(), () => {})
    const seen: unknown[] = []
    // It begins to load while there is a lease, and its read comes back unanswered; or there is none at once.
    if (isWaiting) hot.load(readCommand('TYPE', ['k'], 0), now(), (reply) => seen.push(reply))
    lease.aliveUntil = now()
    watched.canRead = false
    if (isWaiting) reads.pop()!(undefined, now())
    else expect(hot.load(get, now(), () => {})).toBe(false)
    expect(seen).toEqual(isWaiting ? [undefined] : [])
    lease.aliveUntil = Number.POSITIVE_INFINITY
    watched.canRead = true
    expect(hot.hit('GET', now())).toBeUndefined()
    answer('2')
    expect(hot.hit('STRLEN', now())).toBeUndefined()
  }
})

test('a command that Redis refuses takes nothing from the others, nor does a lost watcher from what nobody guards', () => {
  const consistent = setUp()
  const free = setUp({ ...defaultLocalCache, consistent: false })
  for (const { hot, answer, now } of [consistent, free]) {
    hot.load(get, now(), () => {})
    answer('v1')
  }
  consistent.hot.load(readCommand('LLEN', ['k'], 0), consistent.now(), () => {})
  consistent.reads.pop()!(undefined, consistent.now())
  free.watched.canRead = false
  expect(free.hot.load(readCommand('STRLEN', ['k'], 0), free.now(), () => {})).toBe(false)
  for (const { hot, now } of [consistent, free]) expect(text(hot.hit('GET', now()))).toBe('$2\r\nv1\r\n')
})

test('a key whose own time is over at the reading is not kept', () => {
  const { hot, answer, now } = setUp()
  hot.load(get, now(), () => {})
  answer('v', 0)
  expect(hot.replyCount).toBe(0)
})

test('the same strategy again extends, another one drops', () => {
  const { hot, answer, now } = setUp()
  hot.load(get, now(), () => {})
  answer('v')
  hot.setHandling({ strategy: { ...defaultLocalCache }, ruleId: 'r', until: 2e12, isClaim: false })
  expect(hot.replyCount).toBe(1)
  hot.setHandling({ strategy: { strategy: 'Observe' }, ruleId: 'r', until: 2e12, isClaim: false })
  expect(hot.replyCount).toBe(0)
  expect(hot.load(get, now(), () => {})).toBe(false)
})

test('a strategy’s bound on entries and bytes holds over its keys', () => {
  const { make, answer, now } = setUp({ ...defaultLocalCache, cacheSize: 2, expireStrategy: 'LRU' })
  const keys = ['a', 'b', 'c'].map(make)
  for (const hot of keys) {
    hot.load(get, now(), () => {})
    answer('v')
  }
  expect(keys.map(({ replyCount }) => replyCount)).toEqual([0, 1, 1])
  expect(keys[1]!.cache).toBe(keys[2]!.cache)
  expect((keys[1]!.cache as BoundedCache<HotKey>).size).toBe(2)
})

test('replies larger than the whole cache make the key bypass it for a while', () => {
  const { hot, answer, now } = setUp({ ...defaultLocalCache, maxBytes: 1000 })
  hot.load(get, now(), () => {})
  answer('x'.repeat(2000))
  expect(hot.replyCount).toBe(0)
  expect(hot.load(get, now(), () => {})).toBe(false)
  expect(hot.load(get, now() + 1000, () => {})).toBe(true)
})

test('a limit gives a reply again while that may be kept, until a flush, and none that was read before one', () => {
  const limit = { algorithm: 'tokenBucket', limit: 1, windowMs: 1000, onLimit: 'stale', scope: 'process' } as const
  const { hot, answer, at, now } = setUp({ strategy: 'RateLimit', ...limit }, 5000)
  hot.load(get, now(), () => {})
  answer('v1')
  at(now() + 4999)
  hot.drop()
  expect(text(hot.lastReply('GET'))).toBe('$2\r\nv1\r\n')
  at(now() + 1)
  expect(hot.lastReply('GET')).toBeUndefined()
  hot.load(get, now(), () => {})
  answer('v2')
  expect(text(hot.lastReply('GET'))).toBe('$2\r\nv2\r\n')
  hot.load(get, now(), () => {})
  hot.flush()
  expect(hot.lastReply('GET')).toBeUndefined()
  answer('v3')
  expect(hot.lastReply('GET')).toBeUndefined()
})

test('two arguments that only look alike when put together are two commands', () => {
  const ids = [
    readCommand('GETRANGE', ['k', '1', '23'], 0).id,
    readCommand('GETRANGE', ['k', '12', '3'], 0).id,
    readCommand('GETRANGE', ['k', '1 2:3', ''], 0).id,
  ]
  expect(new Set(ids).size).toBe(3)
})

test('a carried value takes the place of a cached one, and a load in flight does not bring the older back', () => {
  const { hot, answer, now } = setUp({ ...defaultLocalCache, consistent: false })
  hot.load(get, now(), () => {})
  answer('old')
  hot.load(readCommand('STRLEN', ['k'], 0), now(), () => {})
  hot.renew(Buffer.from('new'), 60_000)
  expect(text(hot.hit('GET', now()))).toBe('$3\r\nnew\r\n')
  answer('3')
  expect(hot.replyCount).toBe(1)
  expect(hot.hit('GET', now() + 60_000)).toBeUndefined()
})

test('a carried value is not kept for a key that nobody reads', () => {
  const { hot } = setUp({ ...defaultLocalCache, consistent: false })
  hot.renew(Buffer.from('new'), 60_000)
  expect(hot.replyCount).toBe(0)
})

test('a reply whose time is nearly over is reloaded by one reader, while all are served', () => {
  const { hot, reads, answer, at, now } = setUp()
  hot.load(get, now(), () => {})
  answer('v1')
  at(1000 + 44_000)
  expect(text(hot.hit('GET', now()))).toBe('$2\r\nv1\r\n')
  expect(reads).toHaveLength(0)
  at(1000 + 45_000)
  for (let count = 0; count < 100; count++) expect(text(hot.hit('GET', now()))).toBe('$2\r\nv1\r\n')
  expect(reads).toHaveLength(1)
  answer('v2')
  expect(text(hot.hit('GET', now()))).toBe('$2\r\nv2\r\n')
  // The new reply has a whole life of its own.
  at(1000 + 62_000)
  expect(text(hot.hit('GET', now()))).toBe('$2\r\nv2\r\n')
  expect(reads).toHaveLength(0)
})

test('processes do not reload at one instant, and a key that ends is not loaded for its last moments', () => {
  const { hot, reads, answer, at, now, roll } = setUp()
  roll(1)
  hot.load(get, now(), () => {})
  answer('v1')
  at(1000 + 53_000)
  hot.hit('GET', now())
  expect(reads).toHaveLength(0)
  at(1000 + 54_000)
  hot.hit('GET', now())
  expect(reads).toHaveLength(1)
  answer('v2', 150)
  at(now() + 149)
  expect(text(hot.hit('GET', now()))).toBe('$2\r\nv2\r\n')
  expect(reads).toHaveLength(0)
})
