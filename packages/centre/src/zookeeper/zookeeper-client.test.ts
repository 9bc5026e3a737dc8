import { FaultProxy, startZooKeeper, waitFor, type ZooKeeperServer } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { isZooKeeperError } from './operations.ts'
import { ZooKeeperClient } from './zookeeper-client.ts'

let server: ZooKeeperServer
beforeAll(async () => {
  server = await startZooKeeper()
})
afterAll(() => server.stop())

async function connected(options: Partial<ConstructorParameters<typeof ZooKeeperClient>[0]> = {}) {
  const client = new ZooKeeperClient({ servers: server.address, sessionTimeoutMs: 4000, ...options })
  await client.connect()
  return client
}

test('makes, reads, writes, lists and deletes nodes, with versions checked', async () => {
  const client = await connected()
  await client.ensure('/calls/deep')
  await client.ensure('/calls/deep')
  expect(await client.create('/calls/a', 'one', 'persistent')).toBe('/calls/a')
  expect(await client.getData('/calls/a')).toMatchObject({ data: 'one', stat: { version: 0, ephemeralOwner: 0n } })
  expect(await client.setData('/calls/a', 'zwei ü', 0)).toMatchObject({ version: 1 })
  await expect(client.setData('/calls/a', 'late', 0)).rejects.toMatchObject({ zooKeeperCode: 'BAD_VERSION' })
  expect((await client.getData('/calls/a'))?.data).toBe('zwei ü')
  expect((await client.getChildren('/calls')).sort()).toEqual(['a', 'deep'])
  await expect(client.create('/calls/a', '', 'persistent')).rejects.toMatchObject({ zooKeeperCode: 'NODE_EXISTS' })
  await client.delete('/calls/a')
  expect(await client.exists('/calls/a')).toBe(undefined)
  expect(await client.getData('/calls/a')).toBe(undefined)
  await expect(client.delete('/calls/a')).rejects.toMatchObject({
    zooKeeperCode: 'NO_NODE',
    code: 'FB_CENTRE_ZOOKEEPER',
  })
  await client.close()
})

test('sequential nodes of ten clients at once have ten numbers', async () => {
  const clients = await Promise.all(Array.from({ length: 10 }, () => connected()))
  await clients[0]!.ensure('/row')
  const paths = await Promise.all(clients.map((client) => client.create('/row/n-', '', 'persistent-sequential')))
  expect(paths.sort()).toEqual(Array.from({ length: 10 }, (_, index) => `/row/n-${String(index).padStart(10, '0')}`))
  await Promise.all(clients.map((client) => client.close()))
})

test('a transaction happens whole or not at all, and names the operation that failed', async () => {
  const client = await connected()
  await client.ensure('/tx')
  await client.create('/tx/old', '', 'persistent')
  await expect(
    client.multi([
      { kind: 'delete', path: '/tx/old', version: 0 },
      { kind: 'check', path: '/tx', version: 99 },
    ]),
  ).rejects.toThrow('BAD_VERSION to check /tx in a transaction')
  expect(await client.exists('/tx/old')).toBeDefined()
  await client.multi([
    { kind: 'setData', path: '/tx', data: 'x', version: 0 },
    { kind: 'delete', path: '/tx/old', version: 0 },
    { kind: 'create', path: '/tx/new', data: 'y', mode: 'persistent' },
  ])
  expect(await client.getChildren('/tx')).toEqual(['new'])
  await client.close()
})

test('an ephemeral node ends with its session: at once on close, after the timeout on silence', async () => {
  const watcher = await connected()
  const proxy = await FaultProxy.start(server.port)
  const polite = await connected()
  await polite.create('/polite', '', 'ephemeral')
  expect((await watcher.exists('/polite'))?.ephemeralOwner).toBe(polite.sessionId)
  await polite.close()
  expect(await watcher.exists('/polite')).toBe(undefined)

  const silent = await connected({ servers: `127.0.0.1:${proxy.port}`, sessionTimeoutMs: 1000 })
  const events: string[] = []
  silent.onSession((event) => events.push(event))
  await silent.create('/silent', '', 'ephemeral')
  proxy.faults.isBlackHole = true
  await waitFor(async () => (await watcher.exists('/silent')) === undefined)
  proxy.faults.isBlackHole = false
  await waitFor(() => events.includes('connected'))
  expect(events).toEqual(['disconnected', 'expired', 'connected'])
  await silent.close()
  await proxy.close()
  await watcher.close()
})

test('a cut connection resumes the same session, ephemeral nodes and all', async () => {
  const proxy = await FaultProxy.start(server.port)
  const client = await connected({ servers: `127.0.0.1:${proxy.port}` })
  const { sessionId } = client
  await client.create('/resumed', '', 'ephemeral')
  proxy.cut()
  await waitFor(() => !client.isConnected)
  await expect(client.exists('/resumed')).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
  await waitFor(() => client.isConnected)
  expect(client.sessionId).toBe(sessionId)
  expect(await client.exists('/resumed')).toBeDefined()
  await client.close()
  await proxy.close()
})

test('a server that is down, or accepts and says nothing, is an error within the time limit and not a hang', async () => {
  const proxy = await FaultProxy.start(server.port)
  proxy.faults.isBlackHole = true
  const silent = new ZooKeeperClient({ servers: `127.0.0.1:${proxy.port}`, connectTimeoutMs: 100 })
  await expect(silent.connect()).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
  await silent.close()
  proxy.faults.isBlackHole = false
  const slow = await connected({ servers: `127.0.0.1:${proxy.port}`, requestTimeoutMs: 100 })
  proxy.faults.isBlackHole = true
  await expect(slow.exists('/')).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
  await slow.close()
  const servers = `127.0.0.1:${proxy.port}`
  await proxy.close()
  const refused = new ZooKeeperClient({ servers })
  await expect(refused.connect()).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
  await refused.close()
})

test('the next server of the list is tried if the first is down', async () => {
  const client = await connected({ servers: `127.0.0.1:1,${server.address}` })
  expect(client.isConnected).toBe(true)
  await client.close()
})

test('nodes created with a password are accessible only to its user', async () => {
  const owner = await connected({ auth: 'ids:secret' })
  await owner.create('/private', 'x', 'persistent')
  const stranger = await connected()
  await stranger.getData('/private').then(
    () => expect.fail('a stranger read it'),
    (error) => expect(isZooKeeperError(error, 'NO_AUTH')).toBe(true),
  )
  expect((await owner.getData('/private'))?.data).toBe('x')
  await Promise.all([owner.close(), stranger.close()])
})

test('server lists that cannot be read are refused', () => {
  for (const servers of ['', 'a:b', 'host:0', 'host:99999', '::1']) {
    expect(() => new ZooKeeperClient({ servers })).toThrow(/option servers/)
  }
})
