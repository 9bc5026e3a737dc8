import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { FaultProxy, freePort, type RedisServer, scale, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { type Change, ReplicaStream, type SourceState } from '@firebreak/watch'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'

let server: RedisServer
let proxy: FaultProxy
let writer: Redis
let stream: ReplicaStream
let changes: Change[]
let states: SourceState[]
let problems: Error[]

function follow(
  options: Partial<ConstructorParameters<typeof ReplicaStream>[0]> = {},
  port = proxy.port,
): ReplicaStream {
  const listener = {
    onChange: (change: Change) => void changes.push(change),
    onState: (state: SourceState) => void states.push(state),
    onProblem: (problem: Error) => void problems.push(problem),
  }
  stream = new ReplicaStream({ address: { host: '127.0.0.1', port }, ...options }, listener)
  stream.start()
  return stream
}

const live = () =>
  waitFor(() => stream.state.kind === 'live', {
    what: () => `a live stream; it is ${JSON.stringify(stream.state)} ${problems.at(-1)?.message}`,
  })
const flushes = () => changes.filter(({ kind }) => kind === 'flush')
const keys = () => changes.flatMap((change) => (change.kind === 'keys' ? change.keys.map(({ key }) => key) : []))

beforeEach(async () => {
  server = await startRedis({ args: ['--repl-diskless-sync-delay', '0', '--repl-backlog-size', '4mb'] })
  proxy = await FaultProxy.start(server.port)
  writer = new Redis(server.port, { maxRetriesPerRequest: null })
  writer.on('error', () => {})
  changes = []
  states = []
  problems = []
})
afterEach(async () => {
  await stream?.close()
  writer.disconnect()
  await proxy.close()
  await server.stop()
})

describe('the replica stream', () => {
  test('sees every write, whoever makes it: commands, transactions, scripts, expiry', async () => {
    follow()
    await live()
    expect(flushes()).toHaveLength(1)
    await writer.set('plain', 'v')
    await writer.multi().set('t1', '1').hset('t2', 'f', 'v').exec()
    await writer.eval("redis.call('SET', KEYS[1], 'x') redis.call('DEL', KEYS[2])", 2, 's1', 'plain')
    await writer.select(2)
    await writer.set('other', 'v', 'PX', 5)
    await writer.select(0)
    await waitFor(() => keys().filter((key) => key === 'other').length === 2, {
      what: () => `the expiry; seen ${keys()}`,
    })
    expect(keys()).toEqual(['plain', 't1', 't2', 's1', 'plain', 'other', 'other'])
    const transaction = changes.filter((change) => change.kind === 'keys' && change.keys.length === 2)
    expect(transaction).toHaveLength(2)
    const first = changes.find((change) => change.kind === 'keys')
    expect(first?.kind === 'keys' && Buffer.from(first.keys[0]!.value!).toString()).toBe('v')
    expect(changes.find((change) => change.kind === 'keys' && change.keys[0]!.key === 'other')?.database).toBe(2)
  })

  test('misses nothing when its connection is killed many times', async () => {
    const writes = scale(4000, 20_000)
    const kills = scale(8, 20)
    follow()
    await live()
    let done = 0
    const writing = (async () => {
      for (let index = 0; index < writes; index += 50) {
        await Promise.all(Array.from({ length: 50 }, (_, offset) => writer.set(`k${index + offset}`, 'v')))
        done = index
      }
    })()
    for (let kill = 1; kill <= kills; kill++) {
      await waitFor(() => done >= (writes / (kills + 1)) * kill || done + 50 >= writes, { everyMs: 1 })
      proxy.cut()
    }
    await writing
    await waitFor(() => new Set(keys()).size === writes, {
      timeoutMs: 30_000,
      what: () => `${writes} keys; seen ${new Set(keys()).size}`,
    })
    expect(keys()).toHaveLength(writes)
    expect(flushes()).toHaveLength(1)
  })

  test('an overrun backlog causes a flush', async () => {
    await writer.config('SET', 'repl-backlog-size', '16384')
    follow()
    await live()
    proxy.faults.refusesConnections = true
    proxy.cut()
    await waitFor(() => stream.state.kind === 'connecting')
    for (let index = 0; index < 10; index++) await writer.set('big', 'x'.repeat(10_000))
    // The backlog keeps what it must while a replica is attached; ours is gone, so its limit holds.
    proxy.faults.refusesConnections = false
    await live()
    expect(flushes()).toHaveLength(2)
    await writer.set('after', '1')
    await waitFor(() => keys().includes('after'))
  })

  test('resumes from a saved position', async () => {
    follow()
    await live()
    await writer.set('before', '1')
    await waitFor(() => keys().includes('before'))
    await stream.close()
    const { position } = stream
    await writer.set('between', '1')
    changes = []
    follow({ position })
    await waitFor(() => keys().includes('between'))
    expect(flushes()).toEqual([])
    expect(keys()).toEqual(['between'])
  })

  test('is not counted by WAIT', async () => {
    follow()
    await live()
    await writer.set('k', 'v')
    expect(await writer.wait(1, 200)).toBe(0)
  })

  test('is no longer live when the master stops answering, and live again after', async () => {
    follow()
    await live()
    server.child.signal('SIGSTOP')
    await waitFor(() => stream.state.kind === 'connecting', { what: 'the lease to run out' })
    server.child.signal('SIGCONT')
    await live()
  })

  test('reports when it lags, and when it has caught up', async () => {
    follow({ maxBehindBytes: 1000 })
    await live()
    // Connection 0 is the poll's, made first; 1 is the stream.
    proxy.pauseServer(1)
    const before = stream.liveSentAt
    await writer.set('k', 'x'.repeat(5000))
    await waitFor(() => stream.state.kind === 'lagging', { what: () => `a lag; it is ${JSON.stringify(stream.state)}` })
    proxy.pauseServer(1, false)
    await live()
    await waitFor(() => stream.liveSentAt > before)
    expect(keys()).toEqual(['k'])
  })

  test('refuses a master that counts replicas, and one that a Sentinel watches, and says why', async () => {
    await writer.config('SET', 'min-replicas-to-write', '1')
    follow()
    await waitFor(() => stream.state.kind === 'failed')
    expect(problems.at(-1)?.message).toContain('min-replicas-to-write')
    await stream.close()
    await writer.config('SET', 'min-replicas-to-write', '0')
    await writer.client('SETNAME', 'sentinel-abc-cmd')
    follow()
    await waitFor(() => stream.state.kind === 'failed')
    expect(problems.at(-1)?.message).toContain('Sentinel')
    await stream.close()
    follow({ allowSentinel: true })
    await live()
  })

  test('a master restarted without its data causes a flush', async () => {
    follow()
    await live()
    await server.child.stop(0)
    server = await server.restart()
    await waitFor(() => flushes().length === 2)
    await live()
    await waitFor(async () => {
      await writer.set('again', '1')
      return keys().includes('again')
    })
  })
})

test('a master behind TLS with a private CA is followed; without the CA the error is about the certificate', async () => {
  const folder = temporaryFolder('tls')
  const file = (name: string) => join(folder, name)
  const names = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=IP:127.0.0.1']
  const files = ['-keyout', file('key.pem'), '-out', file('cert.pem')]
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', '-days', '2', ...files, ...names], {
    stdio: 'ignore',
  })
  const port = await freePort()
  const tls = [
    '--tls-cert-file',
    file('cert.pem'),
    '--tls-key-file',
    file('key.pem'),
    '--tls-ca-cert-file',
    file('cert.pem'),
  ]
  const secure = await startRedis({
    args: ['--tls-port', String(port), ...tls, '--tls-auth-clients', 'no', '--repl-diskless-sync-delay', '0'],
  })
  await secure.cli(
    'ACL',
    'SETUSER',
    'watcher',
    'on',
    '>pw',
    '~*',
    '+psync',
    '+replconf',
    '+info',
    '+ping',
    '+client|list',
  )
  const address = { host: '127.0.0.1', port, username: 'watcher', password: 'pw' }
  follow({ address: { ...address, tls: true } })
  await waitFor(() => problems.length > 0, { what: 'the problem with the certificate' })
  expect(problems[0]).toMatchObject({ code: 'FB_REDIS_TLS', message: expect.stringMatching(/certificate/) })
  await stream.close()
  follow({ address: { ...address, tls: { ca: readFileSync(file('cert.pem'), 'utf8') } } })
  await live()
  await secure.cli('SET', 'encrypted', 'v')
  await waitFor(() => keys().includes('encrypted'), { what: 'the write over TLS' })
  await stream.close()
  await secure.stop()
})
