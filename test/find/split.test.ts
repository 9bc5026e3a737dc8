import { cutOver, segmentKey, segmentOf, splitKey } from '@firebreak/find'
import { type RedisCluster, type RedisServer, scale, startCluster, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const members = scale(20_000, 1_000_000)
const segments = scale(40, 200)
const fill: Record<string, string> = {
  hash: "for i=1,ARGV[1] do redis.call('HSET', KEYS[1], 'field' .. i, 'value' .. i) end",
  set: "for i=1,ARGV[1] do redis.call('SADD', KEYS[1], 'member' .. i) end",
  list: "for i=1,ARGV[1] do redis.call('RPUSH', KEYS[1], 'item' .. i) end",
}
const lengthOf: Record<string, string> = { hash: 'HLEN', set: 'SCARD', list: 'LLEN' }

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

describe.each(['hash', 'set', 'list'])('a big %s', (type) => {
  const key = Buffer.from(`users-${type}`)
  const name = key.toString()

  test('is copied into segments of about equal size, and kept', async () => {
    await server.cli('EVAL', fill[type]!, '1', name, String(members))
    const result = await splitKey({ target: { port: server.port }, key, segments })
    expect(result).toMatchObject({ isComplete: true, plan: { state: 'copied', segments, copied: members } })
    let total = 0
    for (let segment = 0; segment < segments; segment++) {
      const size = Number(await server.cli(lengthOf[type]!, segmentKey(key, segment).toString()))
      expect(size).toBeGreaterThan((members / segments) * 0.7)
      expect(size).toBeLessThan((members / segments) * 1.3)
      total += size
    }
    expect(total).toBe(members)
    expect(Number(await server.cli(lengthOf[type]!, name))).toBe(members)
    if (type === 'hash') {
      const segment = segmentOf(Buffer.from('field777'), segments)
      expect(await server.cli('HGET', `${name}:${segment}`, 'field777')).toBe('value777')
    }
    if (type === 'list') expect(await server.cli('LINDEX', `${name}:1`, '0')).toBe(`item${members / segments + 1}`)
  })

  test('is removed only by the cut-over', async () => {
    const result = await cutOver({ target: { port: server.port }, key })
    expect(result.plan.state).toBe('cut-over')
    expect(await server.cli('EXISTS', name)).toBe('0')
    expect(await server.cli('HGET', `${name}:segments`, 'state')).toBe('cut-over')
    await expect(splitKey({ target: { port: server.port }, key })).rejects.toMatchObject({ code: 'FB_SPLIT_REFUSED' })
  })
})

describe.each(['hash', 'list'])('a split of a %s that was ended', (type) => {
  test('resumes where it was, even after an interrupted step', async () => {
    const key = Buffer.from(`resumed-${type}`)
    await server.cli('EVAL', fill[type]!, '1', key.toString(), '5000')
    const ended = new AbortController()
    const first = await splitKey({
      target: { port: server.port },
      key,
      segments: 10,
      batch: 300,
      signal: ended.signal,
      progress: ({ done, total }) => {
        expect(total).toBe(5000)
        if (done >= 1200) ended.abort()
      },
    })
    expect(first.isComplete).toBe(false)
    expect(first.plan.copied).toBeLessThan(2500)
    // A step that wrote its elements but failed before it wrote its plan.
    if (type === 'list') {
      const segment = Math.floor(first.plan.copied / 500)
      await server.cli(
        'RPUSH',
        `resumed-list:${segment}`,
        `item${first.plan.copied + 1}`,
        `item${first.plan.copied + 2}`,
      )
    }
    let least = Number.POSITIVE_INFINITY
    const second = await splitKey({
      target: { port: server.port },
      key,
      batch: 300,
      progress: ({ done }) => {
        least = Math.min(least, done)
      },
    })
    expect(least).toBeGreaterThan(first.plan.copied)
    expect(second).toMatchObject({ isComplete: true, plan: { segments: 10, state: 'copied' } })
    let total = 0
    for (let segment = 0; segment < 10; segment++) {
      total += Number(await server.cli(lengthOf[type]!, `resumed-${type}:${segment}`))
    }
    expect(total).toBe(5000)
  })
})

test('changes made while it was copied are found by the comparison', async () => {
  await server.cli('EVAL', fill['hash']!, '1', 'moving', '3000')
  const ended = new AbortController()
  const options = { target: { port: server.port }, key: Buffer.from('moving'), segments: 5, batch: 100 }
  await splitKey({
    ...options,
    signal: ended.signal,
    progress: ({ done }) => (done >= 2000 ? ended.abort() : undefined),
  })
  for (let index = 1; index <= 50; index++) await server.cli('HSET', 'moving', `field${index}`, 'changed')
  await server.cli('HDEL', 'moving', 'field100', 'field101')
  const { plan } = await splitKey(options)
  expect(plan.state).toBe('copied')
  for (const index of [1, 25, 50]) {
    const segment = segmentOf(Buffer.from(`field${index}`), 5)
    expect(await server.cli('HGET', `moving:${segment}`, `field${index}`)).toBe('changed')
  }
  expect(await server.cli('HEXISTS', `moving:${segmentOf(Buffer.from('field100'), 5)}`, 'field100')).toBe('0')
  await server.cli('EVAL', fill['list']!, '1', 'growing', '500')
  const list = { target: { port: server.port }, key: Buffer.from('growing'), segments: 5 }
  await splitKey(list)
  await server.cli('LPUSH', 'growing', 'before all')
  await expect(cutOver(list)).rejects.toMatchObject({ code: 'FB_SPLIT_CHANGED' })
  expect(await server.cli('EXISTS', 'growing')).toBe('1')
})

test('the TTL is copied too; keys of others, other types and other plans are refused', async () => {
  const target = { port: server.port }
  await server.cli('EVAL', fill['set']!, '1', 'expiring', '100')
  await server.cli('EXPIRE', 'expiring', '1000')
  await splitKey({ target, key: Buffer.from('expiring'), segments: 2 })
  expect(Number(await server.cli('TTL', 'expiring:1'))).toBeGreaterThan(900)
  await server.cli('SADD', 'mine', 'a', 'b', 'c')
  await server.cli('SET', 'mine:1', 'a real key of somebody')
  const refused = splitKey({ target, key: Buffer.from('mine'), segments: 3 })
  await expect(refused).rejects.toThrow(/"mine:1" exists and was not created by Firebreak/)
  expect(await server.cli('EXISTS', 'mine:0', 'mine:segments')).toBe('0')
  await expect(splitKey({ target, key: Buffer.from('mine:1') })).rejects.toThrow(/is a string/)
  await expect(splitKey({ target, key: Buffer.from('nothing') })).rejects.toThrow(/no such key/)
  await expect(splitKey({ target, key: Buffer.from('expiring'), segments: 7 })).rejects.toThrow(/split into 2/)
  await expect(cutOver({ target, key: Buffer.from('mine') })).rejects.toThrow(/has not been split/)
})

test('on a cluster the segments spread over the nodes', async () => {
  const cluster: RedisCluster = await startCluster({ masters: 3 })
  try {
    await cluster.nodes[0]!.cli('-c', 'EVAL', fill['hash']!, '1', 'users', '2000')
    const target = { port: cluster.nodes[0]!.port }
    await splitKey({ target, key: Buffer.from('users'), segments: 12 })
    await cutOver({ target, key: Buffer.from('users') })
    const sizes = await Promise.all(cluster.nodes.map((node) => node.cli('DBSIZE').then(Number)))
    expect(sizes.reduce((sum, size) => sum + size, 0)).toBe(13)
    expect(sizes.every((size) => size > 0)).toBe(true)
  } finally {
    await cluster.stop()
  }
})
