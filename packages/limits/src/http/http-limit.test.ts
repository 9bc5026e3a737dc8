import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { Answer } from '../answer.ts'
import { localLimiter } from '../local/local-limiter.ts'
import type { RedisLimiter } from '../redis/redis-limiter.ts'
import { fixedWindow, leakyQueue, slidingLog, tokenBucket } from '../spec/specs.ts'
import { HttpLimit } from './http-limit.ts'
import { limitRequests } from './koa.ts'

const seconds = (header: string | undefined, field: string) => Number(new RegExp(`;${field}=(\\d+)`).exec(header!)![1])

test('RateLimit, RateLimit-Policy and Retry-After agree on every answer', async () => {
  const specs = [
    tokenBucket({ capacity: 5, refill: 1, perMs: 2500 }),
    fixedWindow({ limit: 5, windowMs: 4100, anchor: 'firstHit' }),
    slidingLog({ limit: 5, windowMs: 3700 }),
  ]
  for (const spec of specs) {
    const clock = new FakeClock()
    const limit = new HttpLimit({ limiter: localLimiter(spec, { clock }), key: () => 'k', legacyHeaders: true })
    for (let call = 0; call < 40; call++) {
      const { headers, isRefused } = await limit.decide({}, () => 'k')
      const { RateLimit: now, 'RateLimit-Policy': policy } = headers
      expect(seconds(now, 'r')).toBeLessThanOrEqual(seconds(policy, 'q'))
      expect(seconds(now, 't')).toBeLessThanOrEqual(seconds(policy, 'w') + 1)
      expect(headers['X-RateLimit-Limit']).toBe(String(seconds(policy, 'q')))
      expect(headers['X-RateLimit-Remaining']).toBe(String(seconds(now, 'r')))
      expect(headers['X-RateLimit-Reset']).toBe(String(seconds(now, 't')))
      if (isRefused) {
        // A client that returns after either of them is admitted.
        expect(headers['Retry-After']).toBe(String(seconds(now, 't')))
        expect(seconds(now, 'r')).toBe(0)
        clock.step(seconds(now, 't') * 1000)
        expect((await limit.decide({}, () => 'k')).isRefused).toBe(false)
      } else expect(headers['Retry-After']).toBeUndefined()
      clock.step(137)
    }
  }
})

test.each(['open', 'closed'] as const)(
  'a limit that could not be checked says so and shows no numbers: %s',
  async (source) => {
    const answer: Answer = {
      allowed: source === 'open',
      remaining: 0,
      retryAfterMs: source === 'open' ? 0 : 200,
      resetMs: 0,
      delayMs: 0,
      source,
    }
    const spec = fixedWindow({ limit: 5, windowMs: 1000 })
    const limiter = { name: 'hourly', spec, take: async () => answer } as unknown as RedisLimiter
    const { headers, isRefused } = await new HttpLimit({ limiter, legacyHeaders: true }).decide({}, () => 'k')
    expect(isRefused).toBe(source === 'closed')
    expect(headers['RateLimit-Policy']).toBe(`"hourly";q=5;w=1;unavailable=${source}`)
    expect(headers['RateLimit']).toBeUndefined()
    expect(headers['X-RateLimit-Remaining']).toBeUndefined()
    expect(headers['Retry-After']).toBe(source === 'closed' ? '1' : undefined)
  },
)

test('legacy headers are sent only if requested, and describe the tightest limit', async () => {
  const clock = new FakeClock()
  const limiter = [
    localLimiter(fixedWindow({ limit: 100, windowMs: 1000 }), { name: 'a', clock }),
    localLimiter(fixedWindow({ limit: 2, windowMs: 60_000 }), { name: 'b', clock }),
  ]
  const plain = await new HttpLimit({ limiter }).decide({}, () => 'k')
  expect(Object.keys(plain.headers)).toEqual(['RateLimit-Policy', 'RateLimit'])
  const { headers } = await new HttpLimit({ limiter, legacyHeaders: true }).decide({}, () => 'k')
  expect(headers).toMatchObject({ 'X-RateLimit-Limit': '2', 'X-RateLimit-Remaining': '0' })
})

test('if several limits refuse, the legacy headers and Retry-After describe the same one', async () => {
  const clock = new FakeClock()
  const limiter = [
    localLimiter(fixedWindow({ limit: 1, windowMs: 1000, anchor: 'firstHit' }), { name: 'second', clock }),
    localLimiter(fixedWindow({ limit: 1, windowMs: 86_400_000, anchor: 'firstHit' }), { name: 'day', clock }),
    localLimiter(fixedWindow({ limit: 1, windowMs: 60_000, anchor: 'firstHit' }), { name: 'minute', clock }),
  ]
  const limit = new HttpLimit({ limiter, legacyHeaders: true })
  await limit.decide({}, () => 'k')
  const { isRefused, headers } = await limit.decide({}, () => 'k')
  expect(isRefused).toBe(true)
  expect(headers['Retry-After']).toBe('86400')
  expect(headers['X-RateLimit-Reset']).toBe('86400')
})

test('Koa: admits, refuses with problem+json, and delays', async () => {
  const runtime = fakeRuntime()
  const open = () => {
    const sent: Record<string, string> = {}
    const context = {
      ip: '192.0.2.1',
      status: 200,
      type: '',
      body: '' as unknown,
      set: (n: string, v: string) => (sent[n] = v),
    }
    return { context, sent }
  }
  const limit = limitRequests({
    limiter: localLimiter(fixedWindow({ limit: 1, windowMs: 1000 }), { runtime }),
    runtime,
  })
  let reached = 0
  const next = async () => ++reached
  await limit(open().context, next)
  const { context, sent } = open()
  await limit(context, next)
  expect(reached).toBe(1)
  expect(context).toMatchObject({ status: 429, type: 'application/problem+json' })
  expect(JSON.parse(context.body as string)).toMatchObject({ status: 429 })
  expect(sent['Retry-After']).toBeDefined()
  expect(limit.counts).toEqual({ admitted: 1, refused: 1, shadowed: 0 })
  const paced = limitRequests({ limiter: localLimiter(leakyQueue({ intervalMs: 50, queue: 1 }), { runtime }), runtime })
  await paced(open().context, next)
  const second = paced(open().context, next)
  await new Promise(setImmediate)
  expect(reached).toBe(2)
  await runtime.clock.advanceAsync(50)
  await second
  expect(reached).toBe(3)
})
