import { type BoundedCache, defaultLocalCache } from '@firebreak/core'
import { expect, test } from 'vitest'
import { watchedKey } from '../testing/watched-key.ts'
import type { CachedReply } from './cached-reply.ts'
import type { HotKey } from './hot-key.ts'
import { readCommand } from './read-command.ts'

const get = readCommand('GET', ['k'], 0)
const text = (reply: CachedReply | undefined) => (reply === undefined ? undefined : Buffer.from(reply.bytes).toString())

test('readers of one command share one load, other commands have their own, and all belong to one entry', () => {
  const { hot, reads, answer, now } = watchedKey()
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

test('a load that a change has overtaken is given to its readers, but not kept and not joined by later ones', () => {
  const { hot, reads, answer, now } = watchedKey()
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

test('an own write sends waiting readers to Redis before it, and nobody loads until it is acknowledged', () => {
  const { hot, answer, now } = watchedKey()
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
  const { hot, answer, lease, now } = watchedKey()
  hot.load(get, now(), () => {})
  answer('v', 50)
  expect(hot.hit('GET', now() + 49)).toBeDefined()
  expect(hot.hit('GET', now() + 50)).toBeUndefined()
  lease.aliveUntil = now() + 10
  expect(hot.hit('GET', now() + 9)).toBeDefined()
  expect(hot.hit('GET', now() + 10)).toBeUndefined()
})

test('a kept reply is not served again once a reader was sent to Redis because no lease was held', () => {
  const strlen = readCommand('STRLEN', ['k'], 0)
  for (const isWaiting of [false, true]) {
    const { hot, reads, answer, lease, watched, now } = watchedKey()
    hot.load(get, now(), () => {})
    answer('v1')
    hot.load(strlen, now(), () => {})
    const seen: unknown[] = []
    // Either the load starts under a lease and its read returns unanswered, or there is no lease at once.
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

test('a command that Redis refuses does not affect the others, and a lost watcher does not affect unguarded replies', () => {
  const consistent = watchedKey()
  const free = watchedKey({ ...defaultLocalCache, consistent: false })
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

test('a key that has expired when it is read is not kept', () => {
  const { hot, answer, now } = watchedKey()
  hot.load(get, now(), () => {})
  answer('v', 0)
  expect(hot.replyCount).toBe(0)
})

test('the same strategy again extends the entry, another one drops it', () => {
  const { hot, answer, now } = watchedKey()
  hot.load(get, now(), () => {})
  answer('v')
  hot.setHandling({ strategy: { ...defaultLocalCache }, ruleId: 'r', until: 2e12, isClaim: false })
  expect(hot.replyCount).toBe(1)
  hot.setHandling({ strategy: { strategy: 'Observe' }, ruleId: 'r', until: 2e12, isClaim: false })
  expect(hot.replyCount).toBe(0)
  expect(hot.load(get, now(), () => {})).toBe(false)
})

test('a strategy’s limit on entries and bytes applies to all its keys together', () => {
  const { make, answer, now } = watchedKey({ ...defaultLocalCache, cacheSize: 2, expireStrategy: 'LRU' })
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
  const { hot, answer, now } = watchedKey({ ...defaultLocalCache, maxBytes: 1000 })
  hot.load(get, now(), () => {})
  answer('x'.repeat(2000))
  expect(hot.replyCount).toBe(0)
  expect(hot.load(get, now(), () => {})).toBe(false)
  expect(hot.load(get, now() + 1000, () => {})).toBe(true)
})

test('a limit repeats a reply while it may be kept, until a flush, and none that was read before the flush', () => {
  const limit = { algorithm: 'tokenBucket', limit: 1, windowMs: 1000, onLimit: 'stale', scope: 'process' } as const
  const { hot, answer, at, now } = watchedKey({ strategy: 'RateLimit', ...limit }, 5000)
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

test('arguments that only look equal when joined are two commands', () => {
  const ids = [
    readCommand('GETRANGE', ['k', '1', '23'], 0).id,
    readCommand('GETRANGE', ['k', '12', '3'], 0).id,
    readCommand('GETRANGE', ['k', '1 2:3', ''], 0).id,
  ]
  expect(new Set(ids).size).toBe(3)
})

test('a carried value replaces a cached one, and a load in flight does not bring the older one back', () => {
  const { hot, answer, now } = watchedKey({ ...defaultLocalCache, consistent: false })
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
  const { hot } = watchedKey({ ...defaultLocalCache, consistent: false })
  hot.renew(Buffer.from('new'), 60_000)
  expect(hot.replyCount).toBe(0)
})

test('a reply that is about to expire is reloaded by one reader, while all are served', () => {
  const { hot, reads, answer, at, now } = watchedKey()
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
  // The new reply has its full lifetime.
  at(1000 + 62_000)
  expect(text(hot.hit('GET', now()))).toBe('$2\r\nv2\r\n')
  expect(reads).toHaveLength(0)
})

test('each reply is reloaded by the command that loaded it', () => {
  const { hot, asked, answer, at, now } = watchedKey()
  const commands = [get, readCommand('GETRANGE', ['k', '1', '2'], 0)]
  for (const command of commands) {
    hot.load(command, now(), () => {})
    answer('v')
  }
  at(1000 + 59_000)
  for (const { id } of commands) hot.hit(id, now())
  const encoded = commands.map((command) => Buffer.from(command.encode()).toString('latin1'))
  expect(asked).toEqual([...encoded, ...encoded])
})

test('processes do not reload at the same instant, and a key is not loaded for its last moments', () => {
  const { hot, reads, answer, at, now, roll } = watchedKey()
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
