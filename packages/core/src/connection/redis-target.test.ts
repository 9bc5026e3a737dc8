import { expect, test } from 'vitest'
import { addressOf, maskUrl, parseRedisUrl, parseRedisUrls } from './redis-target.ts'

test('addresses are read from URLs', () => {
  expect(parseRedisUrl('redis://alice:s%40crt@example.org:7000/3')).toEqual({
    host: 'example.org',
    port: 7000,
    username: 'alice',
    password: 's@crt',
    database: 3,
  })
  expect(parseRedisUrl('rediss://[::1]')).toEqual({ host: '::1', port: 6379, tls: true })
  expect(parseRedisUrl('unix:///run/redis.sock?db=2')).toEqual({ socketPath: '/run/redis.sock', database: 2 })
  expect(parseRedisUrl('redis+unix://:pw@/run/r.sock')).toEqual({ socketPath: '/run/r.sock', password: 'pw' })
  expect(parseRedisUrl('redis://bob@host')).toEqual({ host: 'host', port: 6379, username: 'bob' })
  expect(parseRedisUrl('redis://:p/w#d@h/0?family=6')).toEqual({
    host: 'h',
    port: 6379,
    password: 'p/w#d',
    database: 0,
  })
})

test('several servers share the options given for one of them', () => {
  const common = { username: 'u', password: 'p', database: 4, tls: true }
  expect(parseRedisUrls('rediss://u:p@a:1, [fe80::1]:2 ,c/4')).toEqual([
    { host: 'a', port: 1, ...common },
    { host: 'fe80::1', port: 2, ...common },
    { host: 'c', port: 6379, ...common },
  ])
  expect(parseRedisUrls('redis://a/1,redis://b')).toMatchObject([{ database: 1 }, { database: 1, host: 'b' }])
  expect(() => parseRedisUrl('redis://a,b')).toThrow(/several servers/)
})

test.each([
  'localhost:6379',
  'http://:secret@host',
  'redis://host/x',
  'redis://:6379',
  'redis://',
  '',
  'redis://a,',
  'redis://a,rediss://b',
  'redis://host:99999',
  'redis://:%zz@host',
  'redis://a b:c:d',
  'unix://socket',
  'unix:///a,b',
  'redis://u:pass,word@host',
])('"%s" is refused', (wrong) => {
  expect(() => parseRedisUrls(wrong)).toThrow(expect.objectContaining({ code: 'FB_REDIS_URL' }))
})

test('a password is never shown', () => {
  expect(maskUrl('redis://alice:secret@host')).toBe('redis://alice:***@host')
  expect(maskUrl('redis://alice:se@cr,et@host/0')).toBe('redis://alice:***@host/0')
  for (const url of ['http://u:secret@host', 'redis://u:secret@host/x', 'redis://u:secret@a,redis://v:secret@b/x']) {
    expect(() => parseRedisUrls(url)).toThrow(
      expect.objectContaining({ message: expect.not.stringContaining('secret') }),
    )
  }
})

test('a server is named by its address', () => {
  expect(['redis://[::1]:1', 'redis://h', 'unix:///s'].map((url) => addressOf(parseRedisUrl(url)))).toEqual([
    '[::1]:1',
    'h:6379',
    '/s',
  ])
  expect(addressOf({})).toBe('127.0.0.1:6379')
})
