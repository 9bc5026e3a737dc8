import { keySlot } from '@firebreak/core/commands'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisCluster, type RedisServer, startCluster, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { letWork } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

let cluster: RedisCluster
let upstream: string
const closers: (() => Promise<void>)[] = []
const keys = Array.from({ length: 60 }, (_, index) => `key-${index}`)

beforeAll(async () => {
  const args = ['--repl-diskless-sync-delay', '0', '--cluster-require-full-coverage', 'no']
  cluster = await startCluster({ masters: 3, replicas: 1, args })
  upstream = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
  // A replica that never had its master's data is never elected.
  await waitFor(async () => {
    const views = await Promise.all(cluster.nodes.map((node) => node.cli('INFO', 'replication')))
    return views.every((view) => view.includes('role:master') || view.includes('master_link_status:up'))
  })
})

afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
})

afterAll(async () => {
  await cluster?.stop()
})

async function start(options: { retryForMs: number; connectWaitMs?: number }): Promise<FirebreakProxy> {
  const proxy = await startProxy({ upstream, port: 0, drainMs: 1, ...options })
  closers.push(() => proxy.close())
  return proxy
}

async function connect({ port }: FirebreakProxy): Promise<RawClient> {
  const client = await RawClient.connect(port)
  closers.push(() => client.close())
  return client
}

/** Kills a node, and lets a client's proxy learn that its connections to it are gone. */
async function kill({ child }: RedisServer, client: RawClient): Promise<void> {
  child.signal('SIGKILL')
  await child.exited
  await letWork(client, 20)
}

test('what asks all nodes is answered by who takes a lost one’s place', async () => {
  // Longer than the test may take: who only asks the lost node never ends.
  const proxy = await start({ retryForMs: 600_000 })
  const redis = await connect(proxy)
  await redis.ask('MSET', ...keys.flatMap((key) => [key, 'v']))
  await waitFor(async () => {
    const sizes = await Promise.all(cluster.nodes.map((node) => node.cli('DBSIZE')))
    return sizes.reduce((sum, size) => sum + Number(size), 0) === 2 * keys.length
  })
  const lines = ['DBSIZE', 'KEYS *', 'SCAN 0 COUNT 1000', 'RANDOMKEY', 'SCRIPT LOAD return', 'PING', 'EVAL return+7 0']
  const clients = await Promise.all(lines.map(() => connect(proxy)))
  await kill(cluster.nodes[0]!, redis)
  const asked = lines.map((line, index) =>
    clients[index]!.ask(...line.split(' ').map((word) => word.replace('+', ' '))),
  )
  const [size, all, scan, random, load, pong, script] = await Promise.all(asked)
  expect(size).toBe(`:${keys.length}\r\n`)
  expect(all).toMatch(new RegExp(`^\\*${keys.length}\r\n`))
  expect(scan).toMatch(new RegExp(`^\\*2\r\n\\$1\r\n0\r\n\\*${keys.length}\r\n`))
  expect(random).toMatch(/^\$\d+\r\nkey-/)
  expect(load).toMatch(/^\$40\r\n/)
  expect(pong).toBe('+PONG\r\n')
  expect(script).toBe(':7\r\n')
})

test('a write of which one part has no node says that another part was carried out', async () => {
  const proxy = await start({ retryForMs: 100, connectWaitMs: 100 })
  const redis = await connect(proxy)
  const rows = (await cluster.nodes[2]!.cli('CLUSTER', 'NODES')).split('\n')
  const idOf = (port: number) => rows.find((row) => row.includes(`:${port}@`))!.split(' ')[0]!
  const [victim, other] = ['{c}', '{b}'] as const
  const owner = cluster.nodes.find(({ port }) =>
    rows.some((row) => row.includes(`:${port}@`) && servesSlot(row, victim)),
  )!
  const replica = cluster.nodes.find(({ port }) =>
    rows.some((row) => row.includes(`:${port}@`) && row.includes(`slave ${idOf(owner.port)}`)),
  )!
  await kill(replica, redis)
  await kill(owner, redis)
  expect(await redis.ask('MSET', `${victim}k`, '1')).toMatch(/^-ERR Firebreak: no connection to Redis/)
  expect(await redis.ask('MSET', `${victim}k`, '1', `${other}k`, '1')).toMatch(
    /^-ERR Firebreak: a part of this command/,
  )
  expect(await redis.ask('DEL', `${other}k`, `${victim}k`)).toMatch(/^-ERR Firebreak: a part of this command/)
  expect(await redis.ask('GET', `${other}k`)).toBe('$-1\r\n')
  expect(await redis.ask('MGET', `${victim}k`, `${other}k`)).not.toMatch(/a part of this command/)
  expect(await redis.ask('FLUSHALL')).toMatch(/^-ERR Firebreak: a part of this command/)
})

/** True where a row of CLUSTER NODES has the slot of a key. */
function servesSlot(row: string, key: string): boolean {
  const slot = keySlot(key)
  return row
    .split(' ')
    .slice(8)
    .some((range) => {
      const [first, last = first] = range.split('-').map(Number)
      return first! <= slot && slot <= last!
    })
}
