import {
  all,
  calendarWindow,
  concurrency,
  fixedWindow,
  gcra,
  type LimitSpec,
  leakyBucket,
  leakyQueue,
  localLimiter,
  redisLimiter,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '@firebreak/limits'
import { parsePolicyText, RuleService } from '@firebreak/limits/policy'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { fastify } from 'fastify'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { limitsRoutes } from '../../packages/hub/src/limits/limits-routes.ts'

// What a stranger tries with limits: odd keys and numbers, invalid policies, calls that make no sense.

let server: RedisServer
let redis: Redis
beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
beforeEach(() => redis.flushall())
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const specs: LimitSpec[] = [
  fixedWindow({ limit: 2, windowMs: 60_000 }),
  slidingWindow({ limit: 2, windowMs: 60_000 }),
  slidingCounter({ limit: 2, windowMs: 60_000 }),
  slidingLog({ limit: 2, windowMs: 60_000 }),
  tokenBucket({ capacity: 2, refill: 1, perMs: 60_000 }),
  leakyBucket({ capacity: 2, leak: 1, perMs: 60_000 }),
  gcra({ capacity: 2, rate: 1, perMs: 60_000 }),
  leakyQueue({ intervalMs: 60_000, queue: 1 }),
  calendarWindow({ limit: 2, unit: 'day' }),
  concurrency({ limit: 2, leaseMs: 60_000 }),
]
const each = specs.map((spec) => [spec.kind, spec] as const)
const wrong = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 2 ** 53, '1', null, {}] as unknown[]
const settled = async (work: () => unknown): Promise<unknown> => {
  try {
    return await work()
  } catch (error) {
    return error
  }
}

describe.each(each)('%s', (_, spec) => {
  test('costs, refunds and blocks that are not numbers throw in process as on Redis, and charge nothing', async () => {
    for (const limiter of [localLimiter(spec), redisLimiter(spec, redis, { deadlineMs: 5000 })]) {
      for (const value of wrong) {
        const tries = [
          () => limiter.take('k', value as number),
          () => limiter.refund('k', value as number),
          () => limiter.wait('k', value as number),
          () => limiter.block('k', value as number),
        ]
        // A missing value counts as 1, or as none for a block.
        for (const [index, attempt] of tries.entries())
          expect(await settled(attempt), `${index} ${String(value)}`).toMatchObject({
            code: expect.stringMatching(/^FB_/),
          })
      }
      expect(await limiter.peek('k')).toMatchObject({ allowed: true, remaining: 2 })
    }
  })

  test('names that every object inherits, long keys, and bytes of all kinds are ordinary keys', async () => {
    const keys = [
      '',
      '__proto__',
      'constructor',
      'toString',
      '\0',
      '\r\n$1',
      '{}',
      '}{',
      '%',
      '😀',
      'é',
      'e\u0301',
      'k'.repeat(20_000),
    ]
    for (const limiter of [localLimiter(spec), redisLimiter(spec, redis, { deadlineMs: 5000 })]) {
      for (const key of keys)
        expect(await limiter.take(key, 2), key.slice(0, 9)).toMatchObject({ allowed: true, remaining: 0 })
      for (const key of keys) expect(await limiter.take(key), key.slice(0, 9)).toMatchObject({ allowed: false })
      expect(await limiter.take('another')).toMatchObject({ allowed: true })
    }
  })

  test('giving back more than was taken, again and again, never yields more than the limit', async () => {
    for (const limiter of [
      localLimiter(spec),
      redisLimiter(spec, redis, { deadlineMs: 5000, rememberDenied: false }),
    ]) {
      await limiter.take('k', 1, 'a')
      for (let time = 0; time < 5; time++) await limiter.refund('k', 2)
      await limiter.refund('k', 1, '__proto__')
      await limiter.refund('never taken', 2)
      for (const key of ['k', 'never taken']) {
        let admitted = 0
        for (let time = 0; time < 6; time++) if ((await limiter.take(key)).allowed) admitted++
        expect(admitted).toBe(2)
      }
    }
  })
})

describe('numbers', () => {
  test.each([0, -1, Number.NaN, 1.5, '50'])('a limiter on Redis with an option of %s is never made', (value) => {
    for (const option of ['deadlineMs', 'breakerFailures', 'probeMs', 'maxKeys', 'maxWaiting'])
      expect(() => redisLimiter(specs[0]!, redis, { [option]: value }), option).toThrow(
        expect.objectContaining({ code: 'FB_OPTION_INVALID', option }),
      )
    for (const option of ['maxKeys', 'maxWaiting'])
      expect(() => localLimiter(specs[0]!, { [option]: value }), option).toThrow(
        expect.objectContaining({ code: 'FB_OPTION_INVALID', option }),
      )
  })

  test.each([-1, Number.NaN, '5'])(
    'a wait of at most %s ms is refused as an option, not as a limit',
    async (maxWaitMs) => {
      const limiter = localLimiter(specs[0]!)
      await limiter.take('k', 2)
      const failure = await settled(() => limiter.wait('k', 1, { maxWaitMs: maxWaitMs as number }))
      expect(failure).toMatchObject({ code: 'FB_OPTION_INVALID' })
    },
  )

  test('`all` of no limiter, of one twice, and with a name that every object inherits', async () => {
    expect(() => all([])).toThrow(expect.objectContaining({ code: 'FB_LIMIT_ATOMIC' }))
    const one = localLimiter(specs[0]!)
    expect(() => all([one, one])).toThrow(expect.objectContaining({ code: 'FB_LIMIT_ATOMIC' }))
    const odd = localLimiter(specs[0]!, { name: '__proto__' })
    const both = all([one, odd])
    expect(() => both.take({ [one.name]: 'k' })).toThrow(expect.objectContaining({ code: 'FB_LIMIT_ATOMIC' }))
    both.take('k', 2)
    expect(both.take('k').violated).toEqual([one.name, '__proto__'])
  })
})

const rule = (body: string) => `[rules]\nrule : ${body}\n`
const policies: Record<string, string> = {
  'a count below 0': rule('[count] [uid=+] [time=1; count=-1] [result=2; return=1]'),
  'a count that is none': rule('[count] [uid=+] [time=1; count=NaN] [result=2; return=1]'),
  'a count beyond every number': rule('[count] [uid=+] [time=1; count=1e300] [result=2; return=1]'),
  'a time of 0': rule('[count] [uid=+] [time=0; count=1] [result=2; return=1]'),
  'a fraction of a second': rule('[count] [uid=+] [time=0.5; count=1] [result=2; return=1]'),
  'an unknown method': rule('[toString] [uid=+] [time=1; count=1] [result=2; return=1]'),
  'no return': rule('[count] [uid=+] [time=1; count=1] [result=2]'),
  'a condition without a name': rule('[count] [=5] [time=1; count=1] [result=2; return=1]'),
  'a bound that is no number': rule('[count] [uid<x] [time=1; count=1] [result=2; return=1]'),
  'a dict that is not there': rule('[count] [uid @ nobody] [time=1; count=1] [result=2; return=1]'),
  'a dict called like a method that is not there': rule(
    '[count] [uid @ toString] [time=1; count=1] [result=2; return=1]',
  ),
  'brackets that do not end': rule('[count] [uid=+'),
  'no brackets': rule('count'),
  'an unknown section': '[nonsense]\nx : y\n',
  bytes: '\u0000\u0001\u0002',
  'JSON that ends too early': '{"rules":[',
  'JSON with rules of another kind': '{"rules":{"__proto__":1}}',
  'YAML with a rule that is a text': 'rules:\n  - nonsense\n',
  'YAML with unknown fields':
    'rules:\n  - { return: 1, method: count, when: {}, seconds: 1, count: 1, result: 2, constructor: 1 }\n',
  'an unknown time zone': '[options]\ntimeZone : Mars/Olympus\n',
}

test.each(Object.entries(policies))('a policy with %s is refused with its line, and never takes effect', (_, text) => {
  const service = new RuleService()
  service.load(parsePolicyText(rule('[count] [uid=+] [time=9; count=1] [result=2; return=7]')))
  expect(() => service.load(parsePolicyText(text))).toThrow(
    expect.objectContaining({ code: expect.stringMatching(/^FB_/) }),
  )
  expect(service.version).toBe(1)
})

test('no call, however malformed, gets a 5xx, and none of those counts', async () => {
  const service = new RuleService()
  service.load(parsePolicyText(rule('[count] [act=ask; uid=+] [time=3600; count=5] [result=2; return=7]')))
  const app = fastify()
  await app.register(limitsRoutes, { service, koalaPaths: true })
  const gets = [
    'browse?act=ask&uid[]=1&uid[]=2',
    'browse?%zz',
    'browse?act=ask&uid=%ff',
    'browse?__proto__=1&constructor=2',
    `browse?uid=${'x'.repeat(9000)}`,
    `browse?${Array.from({ length: 3000 }, (_, index) => `k${index}=1`).join('&')}`,
    'value?rule_no=NaN&uid=1',
    'value?rule_no=-1&uid=1',
    'value?rule_no=1e99&uid=1',
    'value?rule_no=7',
    'multi_browse?argsJson=null',
    'multi_browse?argsJson=[null]',
    'multi_browse?argsJson=[[]]',
    'multi_browse?argsJson=%7B%22__proto__%22:1%7D',
    'history?x=1',
    'policy/0',
    'policy/-1',
    'policy/x',
    'policy/1e99',
    'policy/1?format=exe',
    'diff',
    'diff?from=0&to=99',
    'diff?from=NaN&to=1',
    'dump?format=',
    'rules?x=1',
    'alive?x',
    'nonsense',
    '..%2f..%2fetc',
    'convert?to=exe',
  ]
  for (const url of gets) {
    for (const method of ['GET', 'HEAD', 'DELETE', 'PATCH'] as const) {
      const { statusCode } = await app.inject({ method, url: `/v1/limits/${url}` })
      expect(statusCode, `${method} ${url.slice(0, 60)}`).toBeLessThan(500)
    }
    for (const path of ['rule', 'multi', 'monitor']) {
      const { statusCode } = await app.inject(`/${path}/${url.replace('multi_', '')}`)
      expect(statusCode, `/${path}/${url.slice(0, 60)}`).toBeLessThan(500)
    }
  }
  const bodies = [
    '',
    '{',
    'null',
    '7',
    '[]',
    '[null]',
    '"x"',
    '{"uid":null}',
    '{"uid":{}}',
    '{"__proto__":{"uid":"1"}}',
    '{"version":-1}',
    '{"version":1e99}',
    '\u0000',
    '%',
  ]
  const types = [
    'application/json',
    'application/x-www-form-urlencoded',
    'text/plain',
    'application/octet-stream',
    'nonsense',
  ]
  for (const path of [
    'browse',
    'update',
    'feedback',
    'multi_browse',
    'policy',
    'policy?expected=x',
    'reload',
    'reload?expected=-1',
    'rollback',
    'convert',
    'browse_complete',
  ])
    for (const payload of bodies)
      for (const type of types) {
        const { statusCode } = await app.inject({
          method: 'POST',
          url: `/v1/limits/${path}`,
          payload,
          headers: { 'content-type': type },
        })
        expect(statusCode, `POST ${path} ${type} ${payload}`).toBeLessThan(500)
      }
  service.load(parsePolicyText(rule('[count] [act=ask; uid=+] [time=3600; count=5] [result=2; return=7]')))
  const value = (await app.inject('/v1/limits/value?rule_no=7&act=ask&uid=1')).json() as { cache_val: number }
  expect(value.cache_val).toBe(0)
  await app.close()
})
