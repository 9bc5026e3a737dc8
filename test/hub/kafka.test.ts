import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { peek, protect, shieldOf } from '@firebreak/client'
import { encodeBinaryReport, encodeFrame, type HostView, kafkaReports, type Overview } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import {
  FaultProxy,
  type KafkaBroker,
  startEtcd,
  startKafka,
  startRedis,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { Kafka, logLevel, Partitioners, type Producer } from 'kafkajs'
import { afterEach, beforeEach, expect, test } from 'vitest'

type Hub = Awaited<ReturnType<typeof startHub>>
const hourRule = { id: 'hour', prefix: 'hot-', threshold: 1_000_000, windowMs: 3_600_000, strategy: 'Observe' }

let broker: KafkaBroker
let producer: Producer
const ends: (() => unknown)[] = []

beforeEach(async () => {
  broker = await startKafka()
  const kafka = new Kafka({ brokers: [broker.address], logLevel: logLevel.NOTHING })
  producer = kafka.producer({ createPartitioner: Partitioners.DefaultPartitioner })
  await producer.connect()
})

afterEach(async () => {
  broker.child.signal('SIGCONT')
  for (const end of ends.splice(0).reverse()) await end()
  await producer.disconnect()
  await broker.stop()
})

async function startKafkaHub(options: object = {}): Promise<Hub> {
  const hub = await startHub({ kafkaUrl: broker.url, initialRules: [hourRule], logLevel: 'silent', ...options })
  ends.push(() => hub.close())
  return hub
}

function frame(sequence: number, count: number): Uint8Array {
  const now = Date.now()
  const sections = [{ redisClusterId: 'main', entries: [{ key: 'hot-1', count, writes: 0, bytes: 0 }] }]
  const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
  return encodeFrame('report', sequence, encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections }))
}

function publish(value: Uint8Array | string): Promise<unknown> {
  return producer.send({ topic: kafkaReports.topic, messages: [{ key: 'i', value: Buffer.from(value) }] })
}

/** All accesses of the key that a hub has counted. */
function counted(hub: Hub): number {
  return hub.core.engine.get('main', 'hot-1')?.tracks[0]?.heat('accesses', hub.core.now()) ?? 0
}

const refused = async (hub: Hub) => ((await (await fetch(`${hub.url}/v1/overview`)).json()) as Overview).ingest.refused

function protectedClient(url: string, hub: Hub): Redis {
  const options = { hubs: [broker.url, hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false as const }
  const client = protect(new Redis(url), { ...options, onWarning: () => {} })
  ends.push(() => {
    shieldOf(client)?.close()
    client.disconnect()
  })
  return client
}

test('reports go over Kafka and tables come over WebSocket: a key gets hot without a report on the socket', async () => {
  const hub = await startKafkaHub({ initialRules: [{ id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000 }] })
  const redis = await startRedis()
  ends.push(() => redis.stop())
  await redis.cli('SET', 'hot-1', 'a')
  const client = protectedClient(redis.url, hub)
  await waitFor(() => shieldOf(client)!.isConnected)
  const timer = setInterval(() => {
    for (let read = 0; read < 10; read++) client.get('hot-1').catch(() => {})
  }, 10)
  ends.push(() => clearInterval(timer))
  await waitFor(() => peek(client, 'hot-1') !== undefined)
  await waitFor(() => hub.streamedReports > 3)
  expect(await refused(hub)).toEqual({})
  const { hosts } = (await (await fetch(`${hub.url}/v1/hosts`)).json()) as { hosts: HostView[] }
  expect(hosts).toMatchObject([{ reportsBy: 'kafka', tablesBy: 'websocket', isConnected: true }])
})

test('with Kafka for reports and a config centre for tables no process connects to a hub', async () => {
  const etcd = await startEtcd()
  ends.push(() => etcd.stop())
  const tables = `etcd://127.0.0.1:${etcd.port}`
  const initialRules = [{ id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000, minHoldMs: 600_000 }]
  const hub = await startKafkaHub({ initialRules, publishTo: tables })
  const redis = await startRedis()
  ends.push(() => redis.stop())
  await redis.cli('SET', 'hot-1', 'a')
  const options = { hubs: [broker.url], tables, serviceId: 'shop', redisClusterId: 'main', tableFile: false as const }
  const client = protect(new Redis(redis.url), { ...options, onWarning: () => {} })
  ends.push(() => {
    shieldOf(client)?.close()
    client.disconnect()
  })
  await waitFor(async () => {
    await Promise.all(Array.from({ length: 100 }, () => client.get('hot-1')))
    return peek(client, 'hot-1') !== undefined
  })
  expect(hub.streamedReports).toBeGreaterThan(0)
  expect(hub.core.fleet.hosts.counts().connected).toBe(0)
  expect(shieldOf(client)).toMatchObject({ isByCentre: true, isConnected: false })
})

test('a report that the broker has twice is counted once, and what is no report is refused by cause', async () => {
  const hub = await startKafkaHub()
  const bytes = frame(1, 200)
  await publish(bytes)
  await publish(bytes)
  await waitFor(async () => (await refused(hub))['duplicate'] === 1)
  expect(counted(hub)).toBe(200)
  await publish('nonsense')
  await waitFor(async () => (await refused(hub))['unparsable'] === 1)
  await publish(frame(2, 50))
  await waitFor(() => counted(hub) === 250)
})

test('what a hub has counted does not come to the next one, and what came while there was none does', async () => {
  const first = await startKafkaHub()
  await publish(frame(1, 200))
  await waitFor(() => counted(first) === 200)
  await first.close()
  await publish(frame(2, 30))
  const second = await startKafkaHub()
  await waitFor(() => counted(second) > 0, { timeoutMs: 30_000 })
  expect(counted(second)).toBe(30)
}, 60_000)

test('while the broker is frozen reports take the socket, and no access is counted twice when it is back', async () => {
  const hub = await startKafkaHub()
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const client = protectedClient(redis.url, hub)
  await waitFor(() => shieldOf(client)!.isConnected)
  let issued = 0
  const read = async (times: number) => {
    for (let nth = 0; nth < times; nth++) {
      issued++
      await client.get('hot-1')
    }
  }
  await read(200)
  await waitFor(() => counted(hub) === 200 && hub.streamedReports > 0)
  broker.child.signal('SIGSTOP')
  const before = hub.streamedReports
  const reports = hub.core.collector.reportCount
  await waitFor(async () => {
    await read(10)
    return hub.core.collector.reportCount > reports + 10
  })
  expect(hub.streamedReports).toBe(before)
  broker.child.signal('SIGCONT')
  await waitFor(
    async () => {
      await read(10)
      return hub.streamedReports > before + 5
    },
    { timeoutMs: 40_000 },
  )
  await waitFor(() => counted(hub) === issued, { timeoutMs: 20_000 })
}, 90_000)

test('a broker that is gone is an alarm, and the hub is told its reports by the socket', async () => {
  const hub = await startKafkaHub()
  await publish(frame(1, 10))
  await waitFor(() => counted(hub) === 10)
  await broker.stop()
  await waitFor(() => hub.core.alarms.list().some(({ id }) => id === 'kafka'), { timeoutMs: 30_000 })
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const client = protectedClient(redis.url, hub)
  await waitFor(() => shieldOf(client)!.isConnected)
  for (let nth = 0; nth < 20; nth++) await client.get('hot-1')
  await waitFor(() => counted(hub) === 30, { timeoutMs: 20_000 })
}, 60_000)

/** The broker, slow: who is connecting stays so for a while. */
async function slowBroker(): Promise<FaultProxy> {
  const proxy = await FaultProxy.start(Number(broker.address.split(':')[1]))
  proxy.faults.serverDelayMs = 200
  ends.push(() => proxy.close())
  return proxy
}

test('a hub that is closed while it connects leaves no consumer behind', async () => {
  for (const connections of [1, 2, 3]) {
    const proxy = await slowBroker()
    const hub = await startHub({ kafkaUrl: `kafka://127.0.0.1:${proxy.port}`, logLevel: 'silent' })
    await waitFor(() => proxy.connectionCount === connections)
    await hub.close()
    // The other end of a connection hears of it a moment later.
    const opened = proxy.connectionCount
    await waitFor(() => proxy.openConnections === 0)
    expect(proxy.connectionCount).toBe(opened)
  }
}, 60_000)

test('a process that is closed while it connects leaves no producer behind', async () => {
  const proxy = await slowBroker()
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const hubs = [`kafka://127.0.0.1:${proxy.port}`]
  const options = { hubs, serviceId: 'shop', tableFile: false as const, onWarning: () => {} }
  const client = protect(new Redis(redis.url), options)
  ends.push(() => client.disconnect())
  await waitFor(() => proxy.connectionCount === 1)
  shieldOf(client)!.close()
  await waitFor(() => proxy.openConnections === 0)
  expect(proxy.connectionCount).toBe(1)
})

/** A producer of another language, by `docs/reference/formats.md` alone: writes a report of `hot-1` to a file, and prints its headers. */
const foreign = `
import base64, hashlib, hmac, sys, time
path, token, count = sys.argv[1], sys.argv[2].encode(), int(sys.argv[3])
def varint(n):
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out + bytes([n]))
def text(s): return varint(len(s)) + s
now = int(time.time() * 1000)
entry = text(b"hot-1") + varint(count << 1)
payload = varint(now) * 2 + text(b"shop") + text(b"py") + text(b"py-1") + varint(1) + text(b"main") + varint(count) + varint(1) + entry
frame = b"\\x01\\x02" + varint(1) + payload
mac = lambda key, data: hmac.new(key, data, hashlib.sha256)
key = mac(token, b"firebreak report key").hexdigest().encode()
open(path, "wb").write(frame)
print(mac(key, b"firebreak report key id").hexdigest()[:16], base64.urlsafe_b64encode(mac(key, frame).digest()).decode().rstrip("="))
`

test('a producer of another language is counted by the documented format, signed with its app token', async () => {
  const token = 'shop-token-0123456789'
  const tokens = { apps: [{ name: 'shop', token, services: ['shop'], clusters: ['*'] }], people: [] }
  const hub = await startKafkaHub({ tokens })
  const file = join(temporaryFolder('kafka-report'), 'frame')
  const send = async (secret: string, count: number) => {
    const [id, signature] = execFileSync('python3', ['-c', foreign, file, secret, String(count)], { encoding: 'utf8' })
      .trim()
      .split(' ')
    const headers = ['-H', `Firebreak-Key=${id}`, '-H', `Firebreak-Signature=${signature}`]
    execFileSync('kcat', ['-P', '-b', broker.address, '-t', kafkaReports.topic, '-k', 'py-1', ...headers, file])
  }
  await send('not-its-token-012345678', 1000)
  await send(token, 250)
  await waitFor(() => counted(hub) > 0)
  expect(counted(hub)).toBe(250)
  expect(hub.streamedReports).toBe(2)
})
