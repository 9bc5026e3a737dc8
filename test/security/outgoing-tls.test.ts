import { chownSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { join } from 'node:path'
import { createServer } from 'node:tls'
import { startHub } from '@firebreak/hub'
import {
  makeAuthority,
  type PostgresServer,
  startEtcd,
  startMariadb,
  startNats,
  startPostgres,
  startRedis,
  startSource,
  startZooKeeper,
  temporaryFolder,
} from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 120_000 })

const folder = temporaryFolder('outgoing')
const [ours, theirs] = [makeAuthority(join(folder, 'ours')), makeAuthority(join(folder, 'theirs'), 'Somebody')]
const shown = ours.issue('localhost')
const ends: (() => unknown)[] = []
/** What came through a certificate that was checked, in bytes. */
let received = 0
let ports: Record<string, number>

/** TLS before a server that has none, or that we cannot give a certificate. */
async function front(port: number): Promise<number> {
  const server: Server = createServer(shown, (socket) => {
    const behind = connect(port, '127.0.0.1')
    socket.on('data', (chunk) => (received += chunk.length))
    socket.pipe(behind).pipe(socket)
    for (const end of [socket, behind]) end.on('error', () => end.destroy())
  })
  server.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => server.listen(0, resolve))
  ends.push(() => server.close())
  return (server.address() as { port: number }).port
}

beforeAll(async () => {
  const [redis, etcd, zookeeper, nats, hub, mariadb, postgres] = await Promise.all([
    startRedis(),
    startEtcd(),
    startZooKeeper(),
    startNats({ tls: shown }),
    startHub({ logLevel: 'silent' }),
    startMariadb({ args: [`--ssl-cert=${shown.certFile}`, `--ssl-key=${shown.keyFile}`] }),
    startPostgres(),
  ])
  const secured = await postgres.restart(ownedCertificate(postgres))
  ends.push(() => Promise.all([mariadb.stop(), secured.stop()]))
  ends.push(() => Promise.all([redis.stop(), etcd.stop(), zookeeper.stop(), nats.stop(), hub.close()]))
  const hook = createServer(shown, (socket) => {
    socket.on('error', () => {})
    socket.on('data', (chunk) => (received += chunk.length))
    // What a webhook, a collector, Consul and Nacos are content with.
    socket.once('data', () => socket.end('HTTP/1.1 200 OK\r\ncontent-length: 4\r\nconnection: close\r\n\r\ntrue'))
  })
  hook.on('tlsClientError', () => {})
  await new Promise<void>((resolve) => hook.listen(0, resolve))
  ends.push(() => hook.close())
  ports = {
    redis: await front(redis.port),
    etcd: await front(etcd.port),
    zookeeper: await front(zookeeper.port),
    nats: nats.port,
    hook: (hook.address() as { port: number }).port,
    hub: await front(hub.port),
    mariadb: mariadb.port,
    postgres: secured.port,
  }
})
afterAll(async () => {
  for (const end of ends.toReversed()) await end()
})

/** Postgres takes no key of another user. */
function ownedCertificate({ folder: data }: PostgresServer): string[] {
  const { uid, gid } = statSync(data)
  const args = ['-c', 'ssl=on']
  for (const [name, file] of [
    ['ssl_cert_file', shown.certFile],
    ['ssl_key_file', shown.keyFile],
  ] as const) {
    const own = join(data, name)
    writeFileSync(own, readFileSync(file), { mode: 0o600 })
    chownSync(own, uid, gid)
    args.push('-c', `${name}=${own}`)
  }
  return args
}

async function goAllWays(caFile: string): Promise<Record<string, string>> {
  const env = { ...process.env, NODE_EXTRA_CA_CERTS: caFile }
  const child = startSource(new URL('./outgoing-ways.ts', import.meta.url), [JSON.stringify(ports)], { env })
  const [, results] = await child.printed(/results (.*)/, 100_000)
  return JSON.parse(results!) as Record<string, string>
}

test('every way out refuses a certificate of an authority that it does not know, and sends nothing', async () => {
  const results = await goAllWays(theirs.caFile)
  expect(Object.keys(results).length).toBeGreaterThan(14)
  for (const [way, result] of Object.entries(results)) expect(result, way).not.toBe('ok')
  expect(received).toBe(0)
})

test('every way out takes one of an authority that it was given', async () => {
  const results = await goAllWays(ours.caFile)
  expect(results).toEqual(Object.fromEntries(Object.keys(results).map((way) => [way, 'ok'])))
  expect(received).toBeGreaterThan(0)
})
