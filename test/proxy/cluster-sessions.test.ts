import { keySlot } from '@firebreak/core/commands'
import { waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { ClusterStage } from './cluster-stage.ts'
import type { RawClient } from './raw-client.ts'

let stage: ClusterStage

beforeAll(async () => {
  stage = await ClusterStage.open(['--enable-debug-command', 'yes'])
})

afterEach(() => stage.clear())
afterAll(() => stage?.close())

async function askAll(client: RawClient, ...lines: string[]): Promise<string[]> {
  for (const line of lines) client.send(...line.split(' '))
  const replies: string[] = []
  for (const _ of lines) replies.push(await client.next())
  return replies
}

// One on each node of three.
const [a, b, c] = ['a', 'b', 'c']
test('the keys of these tests are on three nodes', () => {
  expect(new Set([a, b, c].map((key) => Math.floor((keySlot(key) * 3) / 16384))).size).toBe(3)
})

test('a client with a connection of its own may name keys of many nodes in any order', async () => {
  const redis = await stage.connect()
  await redis.ask('MSET', a, '1', b, '2', c, '3')
  for (const watched of [a, b, c]) {
    expect(await redis.ask('WATCH', watched)).toBe('+OK\r\n')
    expect(await redis.ask('MGET', a, b)).toBe('*2\r\n$1\r\n1\r\n$1\r\n2\r\n')
    expect(await redis.ask('MGET', b, a)).toBe('*2\r\n$1\r\n2\r\n$1\r\n1\r\n')
    expect(await redis.ask('EXISTS', c, b, a)).toBe(':3\r\n')
    expect(await redis.ask('UNWATCH')).toBe('+OK\r\n')
  }
  const whole = '*3\r\n$1\r\n1\r\n$1\r\n2\r\n$1\r\n3\r\n'
  for (const key of [a, b, c]) {
    const replies = await askAll(redis, 'MULTI', `GET ${key}`, 'EXEC', `MGET ${a} ${b} ${c}`)
    expect(replies.at(-1)).toBe(whole)
  }
  await redis.ask('HELLO', '3')
  await redis.ask('SUBSCRIBE', 'news')
  for (const keys of [
    [a, b, c],
    [b, c, a],
    [c, a, b],
  ])
    expect(await redis.ask('EXISTS', ...keys)).toBe(':3\r\n')
})

test('a write of many nodes beside a connection of its own keeps its place among the client’s requests', async () => {
  const redis = await stage.connect()
  for (let round = 0; round < 20; round++) {
    const value = String(round)
    const replies = await askAll(
      redis,
      `WATCH ${a}`,
      `GET ${a}`,
      `MSET ${b} ${value} ${a} ${value}`,
      `GET ${a}`,
      'MULTI',
      `SET ${a} never`,
      'EXEC',
    )
    expect(replies[3]).toBe(`$${value.length}\r\n${value}\r\n`)
    expect(replies.at(-1)).toBe('*-1\r\n')
  }
})

test('CLIENT REPLY OFF and SKIP are refused, and no write is lost behind them', async () => {
  const redis = await stage.connect()
  await redis.ask('DEL', a, b, c)
  for (const mode of ['OFF', 'SKIP']) {
    const replies = await askAll(redis, `CLIENT REPLY ${mode}`, `SET ${a} 1`, `SET ${b} 1`, `SET ${c} 1`)
    expect(replies[0]).toMatch(/^-ERR Firebreak: CLIENT REPLY/)
    expect(replies.slice(1)).toEqual(new Array(3).fill('+OK\r\n'))
    expect(await (await stage.connect()).ask('DEL', a, b, c)).toBe(':3\r\n')
  }
  expect(await askAll(redis, 'CLIENT REPLY ON', `SET ${a} 1`, `SET ${b} 1`)).toEqual(new Array(3).fill('+OK\r\n'))
  expect(await redis.ask('CLIENT', 'REPLY', 'MAYBE')).toBe('-ERR syntax error\r\n')
  expect(await redis.ask('CLIENT', 'REPLY')).toMatch(/^-ERR wrong number of arguments for 'client\|reply'/)
  expect(await redis.ask('EXISTS', a, b)).toBe(':2\r\n')
})

test('CLIENT TRACKING is refused, for only one node would track', async () => {
  const redis = await stage.connect()
  await redis.ask('HELLO', '3')
  expect(await redis.ask('CLIENT', 'TRACKING', 'ON')).toMatch(/^-ERR Firebreak: CLIENT TRACKING/)
  expect(await redis.ask('CLIENT', 'TRACKING', 'on', 'BCAST')).toMatch(/^-ERR Firebreak: CLIENT TRACKING/)
  expect(await redis.ask('CLIENT', 'TRACKING', 'OFF')).toBe('+OK\r\n')
  expect(await redis.ask('CLIENT', 'TRACKING')).toMatch(/^-ERR wrong number of arguments/)
})

test('a RESP2 subscriber that asks for a key is told what it may send, wherever the key is', async () => {
  const redis = await stage.connect()
  const direct = await stage.connect(stage.cluster.nodes[0]!.port)
  await redis.ask('SUBSCRIBE', 'news')
  await direct.ask('SUBSCRIBE', 'news')
  const refusal = await direct.ask('GET', '{b}')
  expect(refusal).toMatch(/^-ERR Can't execute 'get'/)
  for (const key of [a, b, c]) expect(await redis.ask('GET', key)).toBe(refusal)
  expect(await redis.ask('MGET', a, b, c)).toBe(refusal.replace('get', 'mget'))
  expect(await redis.ask('OBJECT', 'ENCODING', c)).toBe(refusal.replace('get', 'object|encoding'))
  expect(await redis.ask('PING')).toBe('*2\r\n$4\r\npong\r\n$0\r\n\r\n')
  for (const key of [a, b, c]) {
    const replies = await askAll(redis, 'SUBSCRIBE more', 'UNSUBSCRIBE more', 'UNSUBSCRIBE news', `EXISTS {${key}}none`)
    expect(replies.at(-1)).toBe(':0\r\n')
    await redis.ask('SUBSCRIBE', 'news')
  }
})

test('shard channels are those of all nodes', async () => {
  const redis = await stage.connect()
  for (const channel of [a, b, c])
    expect(await (await stage.connect()).ask('SSUBSCRIBE', channel)).toContain('ssubscribe')
  expect(await (await stage.connect()).ask('SSUBSCRIBE', c)).toContain('ssubscribe')
  const channels = await redis.ask('PUBSUB', 'SHARDCHANNELS')
  expect(channels).toMatch(/^\*3\r\n/)
  for (const channel of [a, b, c]) expect(channels).toContain(`$1\r\n${channel}\r\n`)
  expect(await redis.ask('PUBSUB', 'SHARDCHANNELS', 'none*')).toBe('*0\r\n')
  expect(await redis.ask('PUBSUB', 'SHARDNUMSUB', c, 'none', a)).toBe(
    '*6\r\n$1\r\nc\r\n:2\r\n$4\r\nnone\r\n:0\r\n$1\r\na\r\n:1\r\n',
  )
  expect(await redis.ask('PUBSUB', 'SHARDNUMSUB')).toBe('*0\r\n')
})

test('DEBUG OBJECT asks the node of its key', async () => {
  const redis = await stage.connect()
  await redis.ask('MSET', a, '1', b, '2', c, '3')
  for (const key of [a, b, c]) expect(await redis.ask('DEBUG', 'OBJECT', key)).toMatch(/^\+Value at:/)
})

test('a command that waits is sent again while the cluster is down', async () => {
  const redis = await stage.connect()
  const other = await stage.connect()
  const node = stage.cluster.nodes[0]!
  const refusals = async () =>
    Number(/errorstat_CLUSTERDOWN:count=(\d+)/.exec(await node.cli('INFO', 'errorstats'))?.[1] ?? 0)
  expect(keySlot(b)).not.toBe(0)
  await node.cli('CLUSTER', 'DELSLOTS', '0')
  await waitFor(async () => (await node.cli('CLUSTER', 'INFO')).includes('cluster_state:fail'))
  const before = await refusals()
  redis.send('BLPOP', `{${b}}list`, '0')
  await waitFor(async () => (await refusals()) > before)
  await node.cli('CLUSTER', 'ADDSLOTS', '0')
  expect(await other.ask('LPUSH', `{${b}}list`, 'x')).toBe(':1\r\n')
  expect(await redis.next()).toContain('$1\r\nx\r\n')
  expect(await redis.ask('PING')).toBe('+PONG\r\n')
})
