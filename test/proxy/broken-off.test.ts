import type { Socket } from 'node:net'
import { keySlot } from '@firebreak/core/commands'
import { encodeCommand } from '@firebreak/core/resp'
import { letTimePass, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { slotsOf } from './fake-redis.ts'
import { letWork, ProxyStage } from './proxy-stage.ts'

let stage: ProxyStage

beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

test('a reply that breaks off behind one that is still to come is an error, and never a piece of it', async () => {
  const ports: number[] = []
  const waiting: Socket[] = []
  const nodes = await Promise.all(
    [0, 1].map((index) =>
      stage.fake((words, socket) => {
        if (words[0] === 'CLUSTER') return slotsOf(ports)
        if (words[0] !== 'GET') return '+OK\r\n'
        waiting.push(socket)
        return index === 0 ? undefined : `$100000\r\n${'v'.repeat(1000)}`
      }),
    ),
  )
  ports.push(...nodes.map(({ port }) => port))
  const proxy = await stage.start({ upstream: `127.0.0.1:${ports[0]}`, mode: 'cluster', retryForMs: 1 })
  const redis = await stage.client(proxy)
  const [low, high] = ['a', 'b', 'c', 'd', 'e']
    .sort((one, two) => keySlot(one) - keySlot(two))
    .filter((_, at) => at % 4 === 0)
  redis.send('GET', low!)
  redis.send('GET', high!)
  await waitFor(() => waiting.length === 2)
  const [first, second] = nodes.map(({ sockets }) => waiting.find((socket) => sockets.has(socket)))
  const cut = new Promise((resolve) => second!.once('close', resolve))
  second!.end()
  await cut
  await letWork(await stage.client(proxy), 20)
  first!.write('$5\r\nfirst\r\n')
  expect(await redis.next()).toBe('$5\r\nfirst\r\n')
  expect(await redis.next()).toMatch(/^-ERR Firebreak: the connection to Redis at .* was lost/)
  expect(await redis.ask('PING')).toBe('+OK\r\n')
})

test('a request that a cluster asks to send later is not sent again by a proxy that has closed', async () => {
  const ports: number[] = []
  const node = await stage.fake((words) => {
    if (words[0] === 'CLUSTER') return slotsOf(ports)
    return words[0] === 'GET' ? '-CLUSTERDOWN The cluster is down\r\n' : '+OK\r\n'
  })
  ports.push(node.port)
  const proxy = await stage.start({ upstream: `127.0.0.1:${node.port}`, mode: 'cluster' })
  const redis = await stage.client(proxy)
  for (let index = 0; index < 20; index++) redis.send('GET', `key ${index}`)
  await waitFor(() => node.requests.filter((words) => words[0] === 'GET').length > 40)
  await proxy.close()
  await waitFor(() => node.sockets.size === 0)
  const before = node.requests.length
  // What waits is due every twenty milliseconds.
  await letTimePass(100)
  expect([node.sockets.size, node.requests.length]).toEqual([0, before])
})

test('a large request whose connection is refused is answered, and what follows it too', async () => {
  await stage.direct.ask('ACL', 'SETUSER', 'leaving', 'on', '>pass', '~*', '+@all')
  const proxy = await stage.start()
  const redis = await stage.client(proxy)
  expect(await redis.ask('AUTH', 'leaving', 'pass')).toBe('+OK\r\n')
  await stage.direct.ask('ACL', 'DELUSER', 'leaving')
  redis.send('SET', 'k', Buffer.alloc(30_000_000, 'v'))
  redis.send('AUTH', 'default', 'any')
  redis.send('PING')
  expect(await redis.next()).toMatch(/^-WRONGPASS/)
  expect(await redis.next()).toBe('+OK\r\n')
  expect(await redis.next()).toBe('+PONG\r\n')
})

test('a SELECT that the server says nothing to ends the client: what is sent behind it is for that database only', async () => {
  const fake = await stage.fake((words, socket) => {
    if (words[0] !== 'SELECT') return '+OK\r\n'
    socket.destroy()
    return undefined
  })
  const proxy = await stage.start({ upstream: `redis://127.0.0.1:${fake.port}`, connectWaitMs: 100 })
  const client = await stage.client(proxy)
  client.write(Buffer.concat([encodeCommand(['SELECT', '9']), encodeCommand(['SET', 'k', 'v'])]))
  expect(await client.next()).toMatch(/^-ERR Firebreak: /)
  expect(await client.next()).toBe('CLOSED')
  expect(fake.requests.filter(([name]) => name === 'SET')).toEqual([])
})
