import { encodeCommand } from '@firebreak/core/resp'
import { scale, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ClusterStage } from './cluster-stage.ts'

const megabyte = 1024 * 1024
let stage: ClusterStage

beforeAll(async () => {
  stage = await ClusterStage.open([], { maxOutputBytes: 4 * megabyte })
})

afterEach(() => stage.clear())
afterAll(() => stage?.close())

function bulk(value: string): string {
  return `$${value.length}\r\n${value}\r\n`
}

/** Bytes that nodes have sent so far. */
async function sentBytes(nodes = stage.cluster.nodes): Promise<number> {
  const views = await Promise.all(nodes.map((node) => node.cli('INFO', 'stats')))
  return views.reduce((sum, view) => sum + Number(/total_net_output_bytes:(\d+)/.exec(view)![1]), 0)
}

test('the values of many MGETs that nobody reads are not held, and come in their places once somebody does', async () => {
  const redis = await stage.connect()
  const values = Array.from({ length: 60 }, (_, index) => String(index % 10).repeat(megabyte / 2 + index))
  const keys = values.map((_, index) => `large-${index}`)
  for (const [index, key] of keys.entries()) expect(await redis.ask('SET', key, values[index]!)).toBe('+OK\r\n')
  const count = scale(4, 16)
  const before = await sentBytes()
  const baseline = process.memoryUsage().arrayBuffers
  redis.socket.pause()
  for (let index = 0; index < count; index++) redis.send('MGET', ...keys, 'nothing')
  // What was asked for first has left the nodes by then.
  await waitFor(async () => (await sentBytes()) - before > count * 60 * (megabyte / 2))
  expect(process.memoryUsage().arrayBuffers - baseline).toBeLessThan((count * 60 * (megabyte / 2)) / 2)
  expect(await (await stage.connect()).ask('GET', 'nothing')).toBe('$-1\r\n')
  redis.socket.resume()
  const whole = `*61\r\n${values.map(bulk).join('')}$-1\r\n`
  for (let index = 0; index < count; index++) expect((await redis.next()) === whole).toBe(true)
  expect(await redis.ask('PING')).toBe('+PONG\r\n')
})

test('a long MGET of values of very different sizes has every value in its place, between other replies', async () => {
  const redis = await stage.connect()
  const count = scale(20_000, 200_000)
  const sizeOf = (index: number) => (index % 1000 === 7 ? 300_000 : index % 50)
  const values = Array.from({ length: count }, (_, index) => String(index % 10).repeat(sizeOf(index)))
  const keys = values.map((_, index) => `mixed-${index}`)
  for (const [index, key] of keys.entries()) redis.send('SET', key, values[index]!)
  for (const _ of keys) expect(await redis.next()).toBe('+OK\r\n')
  redis.send('ECHO', 'before')
  redis.write(encodeCommand(['MGET', ...keys]))
  redis.send('ECHO', 'between')
  redis.send('MGET', ...keys.slice(0, 100))
  expect(await redis.next()).toBe(bulk('before'))
  expect((await redis.next()) === `*${count}\r\n${values.map(bulk).join('')}`).toBe(true)
  expect(await redis.next()).toBe(bulk('between'))
  expect((await redis.next()) === `*100\r\n${values.slice(0, 100).map(bulk).join('')}`).toBe(true)
})

test('the reply whose turn it is comes, however much waits behind it', async () => {
  const redis = await stage.connect()
  const value = 'x'.repeat(8 * megabyte)
  // One on each node.
  for (const key of ['a', 'b', 'c']) await redis.ask('SET', key, value)
  const requests = [
    ['GET', 'a'],
    ['MGET', 'a', 'b', 'c'],
    ['KEYS', '[abc]'],
    // Over a connection of the client's own.
    ['GET', 'a', 'WATCH'],
  ]
  for (const [name, key, ...rest] of requests) {
    const isWatched = rest[0] === 'WATCH'
    if (isWatched) await redis.ask('WATCH', 'a')
    const nodeOfA = stage.cluster.nodes[2]!
    const others = stage.cluster.nodes.filter((node) => node !== nodeOfA)
    const before = await sentBytes(others)
    nodeOfA.child.signal('SIGSTOP')
    redis.send(name!, key!, ...(isWatched ? [] : rest))
    redis.send('GET', 'b')
    // More than the bound waits for its turn by then.
    await waitFor(async () => (await sentBytes(others)) - before > 5 * megabyte)
    nodeOfA.child.signal('SIGCONT')
    const first = await redis.next()
    if (name === 'KEYS') expect(first).toMatch(/^\*3\r\n/)
    else expect(first.length).toBeGreaterThan(value.length)
    expect((await redis.next()) === bulk(value)).toBe(true)
  }
})
