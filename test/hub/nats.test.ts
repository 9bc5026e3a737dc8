import { peek, protect, shieldOf } from '@firebreak/client'
import { encodeBinaryReport, encodeFrame, natsReports, type Overview, type TransportView } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { type NatsServer, scale, startNats, startRedis, waitFor } from '@firebreak/testkit'
import { jetstream, jetstreamManager } from '@nats-io/jetstream'
import { connect, type NatsConnection } from '@nats-io/transport-node'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

const rule = { id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000, minHoldMs: 20_000 }
type Hub = Awaited<ReturnType<typeof startHub>>

let nats: NatsServer
let connection: NatsConnection
const ends: (() => unknown)[] = []

beforeEach(async () => {
  nats = await startNats()
  connection = await connect({ servers: nats.url.slice(7), maxReconnectAttempts: -1, reconnectTimeWait: 100 })
})

afterEach(async () => {
  nats.child.signal('SIGCONT')
  for (const end of ends.splice(0).reverse()) await end()
  await connection.close()
  await nats.stop()
})

async function startNatsHub(options: object = {}): Promise<Hub> {
  const hub = await startHub({ natsUrl: nats.url, initialRules: [rule], logLevel: 'silent', ...options })
  ends.push(() => hub.close())
  const manager = await jetstreamManager(connection)
  await waitFor(async () => manager.consumers.info(natsReports.stream, natsReports.consumer).catch(() => undefined))
  return hub
}

function frame(sequence: number, count: number, collectTs = Date.now()): Uint8Array {
  const sections = [{ redisClusterId: 'main', entries: [{ key: 'hot-1', count, writes: 0, bytes: 0 }] }]
  const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
  return encodeFrame('report', sequence, encodeBinaryReport({ collectTs, sendTs: collectTs, ...ids, sections }))
}

const refused = async (hub: Hub) => ((await (await fetch(`${hub.url}/v1/overview`)).json()) as Overview).ingest.refused

/** Messages that no hub has confirmed. */
async function waiting(): Promise<number> {
  const manager = await jetstreamManager(connection)
  const { num_pending, num_ack_pending } = await manager.consumers.info(natsReports.stream, natsReports.consumer)
  return num_pending + num_ack_pending
}

test('reports go over NATS and tables come over WebSocket: a key gets hot without a report on the socket', async () => {
  const hub = await startNatsHub()
  const redis = await startRedis()
  ends.push(() => redis.stop())
  await redis.cli('SET', 'hot-1', 'a')
  const client = protect(new Redis(redis.url), { hubs: [nats.url, hub.url], serviceId: 'shop', tableFile: false })
  ends.push(() => {
    shieldOf(client)?.close()
    client.disconnect()
  })
  await waitFor(() => shieldOf(client)!.isConnected)
  const timer = setInterval(() => {
    for (let read = 0; read < 10; read++) client.get('hot-1').catch(() => {})
  }, 10)
  ends.push(() => clearInterval(timer))
  const manager = await jetstreamManager(connection)
  await waitFor(() => peek(client, 'hot-1') !== undefined)
  await waitFor(async () => {
    const { delivered } = await manager.consumers.info(natsReports.stream, natsReports.consumer)
    return delivered.consumer_seq >= 3
  })
  expect(await refused(hub)).toEqual({})
  const { transports } = (await (await fetch(`${hub.url}/v1/transports`)).json()) as { transports: TransportView[] }
  const byKind = Object.fromEntries(transports.map((one) => [one.kind, one]))
  expect(byKind).toMatchObject({ nats: { isLive: true, carries: 'reports', users: 1 }, websocket: { reports: 0 } })
  expect(byKind['nats']!.reports).toBeGreaterThan(0)
})

test('a report that is delivered twice is counted once: by the stream, and by the hub behind it', async () => {
  const hub = await startNatsHub()
  const stream = jetstream(connection)
  const bytes = frame(1, 200)
  expect((await stream.publish(natsReports.subject, bytes, { msgID: 'i/1' })).duplicate).toBe(false)
  expect((await stream.publish(natsReports.subject, bytes, { msgID: 'i/1' })).duplicate).toBe(true)
  // Under another name the stream takes it again; the hub knows its sequence.
  await stream.publish(natsReports.subject, bytes, { msgID: 'other' })
  await waitFor(async () => (await refused(hub))['duplicate'] === 1)
  expect(hub.core.delivery.size).toBe(0)
  await stream.publish(natsReports.subject, frame(2, 200))
  await waitFor(() => hub.core.delivery.size === 1)
  await waitFor(async () => (await waiting()) === 0)
})

test('a report whose confirmation never came is delivered again, and recognised', async () => {
  const hub = await startNatsHub({ maxReportAgeMs: 500 })
  const manager = await jetstreamManager(connection)
  // Somebody takes it, in the hubs' name, and dies before it confirms.
  const greedy = await jetstream(connection).consumers.get(natsReports.stream, natsReports.consumer)
  await hub.close()
  await jetstream(connection).publish(natsReports.subject, frame(1, 400))
  expect(await greedy.next({ expires: 5000 })).not.toBeNull()
  const second = await startNatsHub({ maxReportAgeMs: 500 })
  // It comes again when the wait is over; by then it is too old to be counted.
  await waitFor(async () => (await refused(second))['expired'] === 1, { timeoutMs: 20_000 })
  expect(second.core.delivery.size).toBe(0)
  const info = await manager.consumers.info(natsReports.stream, natsReports.consumer)
  expect(info.num_redelivered + info.delivered.consumer_seq).toBeGreaterThanOrEqual(2)
  await waitFor(async () => (await waiting()) === 0)
}, 30_000)

test('a NATS server that was restarted is found again by sensor and hub, and what it held is taken', async () => {
  const hub = await startNatsHub()
  const stream = jetstream(connection)
  await stream.publish(natsReports.subject, frame(1, 10))
  await waitFor(() => hub.core.collector.reportCount === 1)
  await nats.stop()
  await waitFor(() => hub.core.alarms.list().some(({ id }) => id === 'nats'))
  nats = await nats.restart()
  await waitFor(() => hub.core.alarms.list().every(({ id }) => id !== 'nats'))
  await waitFor(async () =>
    stream.publish(natsReports.subject, frame(2, 400), { msgID: 'again' }).catch(() => undefined),
  )
  await waitFor(() => hub.core.delivery.size === 1, { timeoutMs: 40_000 })
}, 60_000)

/** Kills the server as a crash would, and brings it back with what it had on disk. */
async function crash(during: () => Promise<void> = async () => {}): Promise<void> {
  nats.child.signal('SIGKILL')
  await nats.child.exited
  await during()
  nats = await nats.restart()
}

/** All accesses of a key that a hub has counted, under a rule that looks back for an hour. */
function countedOf(hub: Hub, redisClusterId: string, key: string): number {
  const heat = hub.core.engine.get(redisClusterId, key)
  return heat?.tracks[0]?.heat('accesses', hub.core.now()) ?? 0
}

const hourRule = { id: 'hour', prefix: 'hot-', threshold: 1_000_000, windowMs: 3_600_000, strategy: 'Observe' }

test('a NATS server that is killed and comes back: sensors go on, and no access is counted twice', async () => {
  const hub = await startNatsHub({ initialRules: [hourRule] })
  const redis = await startRedis()
  ends.push(() => redis.stop())
  const options = { hubs: [nats.url, hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false as const }
  const client = protect(new Redis(redis.url), options)
  ends.push(() => {
    shieldOf(client)?.close()
    client.disconnect()
  })
  await waitFor(() => shieldOf(client)!.isConnected)
  let issued = 0
  const read = async (times: number) => {
    for (let nth = 0; nth < times; nth++) {
      issued++
      await client.get('hot-1')
    }
  }
  const counted = () => countedOf(hub, 'main', 'hot-1')
  await read(200)
  await waitFor(() => counted() === 200)
  await crash(async () => {
    await waitFor(() => hub.core.alarms.list().some(({ id }) => id === 'nats'))
    await read(200)
  })
  const missing = issued - counted()
  await waitFor(() => hub.core.alarms.list().every(({ id }) => id !== 'nats'), { timeoutMs: 40_000 })
  await read(200)
  // What came after the return is all there; of what came meanwhile nothing more than once.
  await waitFor(() => counted() >= issued - missing, { timeoutMs: 40_000 })
  // One whose confirmation died with the server comes again after 15 s, too old to be counted.
  const isTaken = async () => (await waiting().catch(() => Number.POSITIVE_INFINITY)) <= scale(5, 0)
  await waitFor(isTaken, { timeoutMs: 40_000 })
  expect(counted()).toBeLessThanOrEqual(issued)
  // Somewhere on the way reports did go over NATS, before and after.
  const delivered = async () => {
    const manager = await jetstreamManager(connection)
    return (await manager.consumers.info(natsReports.stream, natsReports.consumer)).delivered.consumer_seq
  }
  const before = await waitFor(() => delivered().catch(() => undefined))
  await waitFor(async () => {
    await read(20)
    return (await delivered().catch(() => 0)) > before
  })
}, 120_000)

/** Stops the server for a while without ending a connection. */
async function freeze(during: () => Promise<void>): Promise<void> {
  nats.child.signal('SIGSTOP')
  await during()
  nats.child.signal('SIGCONT')
}

test.each([
  ['killed', crash],
  ['frozen', freeze],
])(
  'a key whose reports NATS carries does not cool while NATS is %s, nor when it is back',
  async (_how, trouble) => {
    // Long enough for what is missing until a frozen server is left, and far shorter than the trouble.
    const restless = { ...rule, threshold: 300, windowMs: 2000, minHoldMs: 500 }
    const hub = await startNatsHub({ initialRules: [restless] })
    const redis = await startRedis()
    ends.push(() => redis.stop())
    const options = { hubs: [nats.url, hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false as const }
    const client = protect(new Redis(redis.url), { ...options, onWarning: () => {} })
    ends.push(() => {
      shieldOf(client)?.close()
      client.disconnect()
    })
    await waitFor(() => shieldOf(client)!.isConnected)
    const timer = setInterval(() => {
      for (let read = 0; read < 10; read++) client.get('hot-1').catch(() => {})
    }, 10)
    ends.push(() => clearInterval(timer))
    const consumed = async () => {
      const manager = await jetstreamManager(connection)
      return (await manager.consumers.info(natsReports.stream, natsReports.consumer)).delivered.consumer_seq
    }
    await waitFor(async () => hub.core.delivery.size === 1 && (await consumed()) > 5)
    const changes = async () => {
      await hub.core.stored()
      return (await hub.core.store.history({ limit: 100, key: 'hot-1' })).map(({ kind }) => kind)
    }
    const before = (await changes()).length
    await trouble(async () => {
      const reports = hub.core.collector.reportCount
      // Three windows' worth and more, over the socket.
      await waitFor(() => hub.core.collector.reportCount > reports + 40)
    })
    const consumedBefore = await waitFor(() => consumed().catch(() => undefined), { timeoutMs: 20_000 })
    // NATS carries them again, for some windows.
    await waitFor(async () => (await consumed().catch(() => 0)) > consumedBefore + 30, { timeoutMs: 40_000 })
    const since = (await changes()).slice(0, (await changes()).length - before)
    expect(since.filter((kind) => kind === 'cooled' || kind === 'hot')).toEqual([])
  },
  120_000,
)

test('a report whose confirmation died with the server is sent again, and its sequence is known', async () => {
  const hub = await startNatsHub({ initialRules: [hourRule] })
  const bytes = frame(7, 300)
  const send = () =>
    jetstream(connection)
      .publish(natsReports.subject, bytes, { msgID: 'i/7', timeout: 500 })
      .catch(() => undefined)
  await waitFor(send)
  await waitFor(() => countedOf(hub, 'main', 'hot-1') === 300)
  await waitFor(async () => (await waiting()) === 0)
  await crash()
  // The stream gave the report away when it was confirmed, and may have forgotten its name with it.
  const again = await waitFor(send, { timeoutMs: 40_000 })
  if (!again.duplicate) await waitFor(async () => (await refused(hub))['duplicate'] === 1, { timeoutMs: 40_000 })
  await waitFor(() =>
    jetstream(connection)
      .publish(natsReports.subject, frame(8, 50), { msgID: 'i/8', timeout: 500 })
      .catch(() => undefined),
  )
  await waitFor(() => countedOf(hub, 'main', 'hot-1') === 350, { timeoutMs: 40_000 })
}, 120_000)

test('what is no report is refused by cause and does not come again', async () => {
  const hub = await startNatsHub()
  await jetstream(connection).publish(natsReports.subject, 'nonsense')
  await waitFor(async () => (await refused(hub))['unparsable'] === 1)
  await waitFor(async () => (await waiting()) === 0)
})
