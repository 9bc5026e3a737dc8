import { encodeFrame, type Overview } from '@firebreak/core'
import { temporaryFolder, waitFor } from '@firebreak/testkit'
import { pino } from 'pino'
import { afterEach, expect, test } from 'vitest'
import { WebSocket } from 'ws'
import { type Hub, type HubOptions, startHub } from './start-hub.ts'
import { TestSensor } from './testing/test-sensor.ts'

const product = { id: 'product', prefix: 'product_', threshold: 1000, strategy: 'LocalCache' }
const hubs: Hub[] = []

async function hubWith(options: HubOptions = {}): Promise<Hub> {
  const hub = await startHub({ logLevel: 'silent', initialRules: [product], ...options })
  hubs.push(hub)
  return hub
}

afterEach(async () => {
  await Promise.all(hubs.splice(0).map((hub) => hub.close()))
})

test('a key that is cold on each of four sensors becomes hot on all of them', async () => {
  const hub = await hubWith()
  const sensors = await Promise.all([1, 2, 3, 4].map((n) => TestSensor.connect(hub.url, { hostId: `host-${n}` })))
  for (const sensor of sensors) sensor.report({ product_1: 300, product_2: 20 })
  for (const sensor of sensors) {
    const entry = await waitFor(() => sensor.table.get('main', 'product_1'))
    expect(entry.strategy.strategy).toBe('LocalCache')
    expect(entry.reason).toMatch(/^hot because rule `product`: 1,200\/s over 1 s ≥ 1,000$/)
    expect(sensor.table.get('main', 'product_2')).toBeUndefined()
    expect(sensor.gaps).toEqual([])
  }
})

test('the overview shows the hot key with its reason, and the live socket pushes it', async () => {
  const hub = await hubWith()
  const live = new WebSocket(`${hub.url.replace('http', 'ws')}/v1/live`)
  const seen: Overview[] = []
  live.on('message', (data) => seen.push(JSON.parse(String(data)) as Overview))
  const sensor = await TestSensor.connect(hub.url)
  sensor.report({ product_1: 4120, cold: 5 })
  const shown = await waitFor(() => seen.find(({ keys }) => keys[0]?.state === 'hot'))
  live.close()
  expect(shown.keys[0]).toMatchObject({ key: 'product_1', ruleId: 'product', hosts: 1 })
  expect(shown.keys[0]?.reason).toBe('hot because rule `product`: 4,120/s over 1 s ≥ 1,000')
  const overview = (await (await fetch(`${hub.url}/v1/overview`)).json()) as Overview
  expect(overview.sensors).toEqual({ connected: 1, hosts: 1, services: 1 })
  expect(overview.verdict).toMatch(/1 key is hot/)
})

test('welcome tells the pace, heartbeats tell versions, lane and switch', async () => {
  const hub = await hubWith({ heartbeatMs: 50, reportIntervalMs: 120, hubId: 'hub-a' })
  const sensor = await TestSensor.connect(hub.url)
  expect(sensor.welcome).toMatchObject({ hubId: 'hub-a', intervalMs: 120, samplingFloor: 1, heartbeatMs: 50 })
  expect(Math.abs(sensor.welcome!.hubTime - Date.now())).toBeLessThan(60_000)
  const items = [{ key: 'a' }]
  const first = hub.publishInvalidation({ redisClusterId: 'main', database: 0, kind: 'keys', items })
  const second = hub.publishInvalidation({ redisClusterId: 'other', database: -1, kind: 'flush', items: [] })
  expect(second).toBe(first + 1)
  await waitFor(() => sensor.heartbeats.find(({ laneHead }) => laneHead === second))
  expect(sensor.invalidations.map(({ sequence, kind }) => [sequence, kind])).toEqual([
    [first, 'keys'],
    [second, 'flush'],
  ])
  const { epoch, version } = sensor.heartbeats.at(-1)!
  expect([epoch, version]).toEqual([sensor.table.epoch, sensor.table.version])
})

test('the kill switch makes a fleet of eight plain and brings it back', async () => {
  const hub = await hubWith()
  const sensors = await Promise.all(
    Array.from({ length: 8 }, (_, n) => TestSensor.connect(hub.url, { serviceId: `s${n % 3}`, hostId: `h${n}` })),
  )
  for (const isOff of [true, false]) {
    const answer = await fetch(`${hub.url}/v1/switch`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify({ isOff }),
    })
    expect(await answer.json()).toEqual({ isOff, isStored: true })
    for (const sensor of sensors) await waitFor(() => sensor.table.isOff === isOff, { timeoutMs: 1000 })
  }
})

test('a sensor that asks for the table again gets it whole', async () => {
  const hub = await hubWith()
  const sensor = await TestSensor.connect(hub.url)
  sensor.report({ product_1: 2000 })
  await waitFor(() => sensor.table.size === 1)
  sensor.send('resync', { reason: 'test' })
  await waitFor(() => sensor.snapshots === 2)
  expect(sensor.table.size).toBe(1)
})

test('a claim is confirmed or taken back over the wire', async () => {
  const hub = await hubWith()
  const sensor = await TestSensor.connect(hub.url)
  // A claim counts about keys that the process has reported; the report may come after it.
  sensor.send('claim', { redisClusterId: 'main', key: 'product_7', ruleId: 'product', heat: 1500 })
  sensor.report({ product_7: 600 })
  await waitFor(() => sensor.table.get('main', 'product_7'))
  sensor.send('claim', { redisClusterId: 'main', key: 'product_8', ruleId: 'product', heat: 15 })
  await waitFor(() => sensor.deltas.some(({ removed }) => removed.some(({ key }) => key === 'product_8')))
})

test('a 10 MB frame is refused with a clear error and the connection lives on', async () => {
  const hub = await hubWith()
  const sensor = await TestSensor.connect(hub.url)
  sensor.socket.send(encodeFrame('report', 1, new Uint8Array(10_000_000)))
  const refused = await waitFor(() => sensor.refused[0])
  expect(refused).toEqual({
    code: 'FB_REPORT_REFUSED',
    reason: 'report refused: it has 10,000,000 bytes; the hub accepts 4,194,304 (maxReportBytes)',
  })
  sensor.report({ product_1: 2000 })
  await waitFor(() => sensor.table.get('main', 'product_1'))
})

test('a frame beyond every limit ends the connection with the reason, counted', async () => {
  const hub = await hubWith()
  const sensor = await TestSensor.connect(hub.url)
  sensor.socket.send(encodeFrame('report', 1, new Uint8Array(20_000_000)))
  const closed = await waitFor(() => sensor.closed)
  expect(closed.code).toBe(1009)
  expect(hub.core.collector.refused).toEqual({ 'too-large': 1 })
  const next = await TestSensor.connect(hub.url)
  next.report({ product_1: 2000 })
  await waitFor(() => next.table.get('main', 'product_1'))
})

test('broken frames are refused by cause, one by one, and end the connection when there are only such', async () => {
  const hub = await hubWith()
  const sensor = await TestSensor.connect(hub.url)
  sensor.socket.send(Uint8Array.from([9, 2, 0]))
  // Of a later version: passed over and counted.
  sensor.socket.send(Uint8Array.from([1, 99, 0]))
  sensor.socket.send(encodeFrame('report', 1, Uint8Array.from([1, 2, 3])))
  sensor.socket.send(encodeFrame('status', 1, new TextEncoder().encode('{"sentAt":"x"}')))
  sensor.socket.send(encodeFrame('welcome', 1, new TextEncoder().encode('{}')))
  await waitFor(() => sensor.refused.length === 4)
  expect(sensor.refused.map(({ reason }) => reason)).toEqual([
    'frame version 9 is not supported; this side speaks 1',
    expect.stringContaining('report refused, byte'),
    expect.stringContaining('the field sentAt of a status frame is invalid'),
    'a welcome frame may only be sent by the hub',
  ])
  expect(hub.core.collector.refused).toEqual({ version: 2, unparsable: 3 })
  sensor.report({ product_1: 2000 })
  await waitFor(() => sensor.table.get('main', 'product_1'))
  for (let n = 0; n < 10; n++) sensor.socket.send(Uint8Array.from([7]))
  expect(await waitFor(() => sensor.closed)).toEqual({ code: 1002, reason: 'too many broken frames' })
})

test('a sensor that sends anything before hello, or text, is turned away with the reason', async () => {
  const hub = await hubWith()
  const early = new TestSensor(hub.url)
  early.socket.on('open', () => early.report({ a: 1 }))
  expect(await waitFor(() => early.closed)).toEqual({ code: 1008, reason: 'hello must come first' })
  const chatty = new TestSensor(hub.url)
  chatty.socket.on('open', () => chatty.socket.send('hello'))
  expect(await waitFor(() => chatty.closed)).toEqual({ code: 1002, reason: 'sensors speak binary frames' })
})

test('rules, history, audit, switch and hot keys survive a restart on SQLite', async () => {
  const dataFolder = temporaryFolder('hub')
  const first = await hubWith({ dataFolder })
  const sensor = await TestSensor.connect(first.url)
  sensor.report({ product_1: 2000 })
  await waitFor(() => sensor.table.get('main', 'product_1'))
  const { epoch, version } = sensor.table
  await first.close()
  expect(await waitFor(() => sensor.closed)).toEqual({ code: 1001, reason: 'the hub is stopping' })
  const second = await hubWith({ dataFolder, initialRules: [{ ...product, id: 'another' }] })
  const again = await TestSensor.connect(second.url)
  expect(again.table.get('main', 'product_1')?.ruleId).toBe('product')
  expect([again.table.epoch, again.table.version > version]).toEqual([epoch, true])
  expect(second.core.rules().rules.map(({ id }) => id)).toEqual(['product'])
  const [history, audit] = await Promise.all(
    ['/v1/history', '/v1/audit'].map(async (path) => (await fetch(`${second.url}${path}`)).json()),
  )
  expect(history).toMatchObject({
    events: [
      { kind: 'delivered', key: 'product_1' },
      { kind: 'hot', key: 'product_1' },
    ],
  })
  expect(audit).toMatchObject({ entries: [{ what: 'add rule product', before: null, after: { id: 'product' } }] })
})

test('the log tells decisions and changes as data', async () => {
  const lines: unknown[] = []
  const logger = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) })
  const hub = await hubWith({ logger: logger as unknown as NonNullable<HubOptions['logger']> })
  const sensor = await TestSensor.connect(hub.url)
  sensor.report({ product_1: 2000 })
  await waitFor(() => sensor.table.get('main', 'product_1'))
  expect(lines).toContainEqual(expect.objectContaining({ who: 'start', msg: 'add rule product' }))
  expect(lines).toContainEqual(expect.objectContaining({ url: hub.url, msg: 'the hub is listening' }))
  expect(lines).toContainEqual(
    expect.objectContaining({
      kind: 'hot',
      key: 'product_1',
      ruleId: 'product',
      msg: expect.stringMatching(/^hot because/),
    }),
  )
})

test('a port that is taken is an error, and nothing is left open', async () => {
  const hub = await hubWith()
  await expect(startHub({ logLevel: 'silent', port: hub.port })).rejects.toThrow('EADDRINUSE')
})

test('other rooms add services behind the same checks', async () => {
  const hub = await hubWith({
    plugins: [async (app) => void app.get('/v1/room', async () => ({ isHere: true }))],
  })
  expect(await (await fetch(`${hub.url}/v1/room`)).json()).toEqual({ isHere: true })
  const foreign = await fetch(`${hub.url}/v1/room`, { headers: { origin: 'http://evil.example' } })
  expect(foreign.status).toBe(403)
})

test('who does not answer a goodbye does not hold up the end of a hub', async () => {
  const hub = await hubWith()
  const browser = new WebSocket(`${hub.url.replace('http', 'ws')}/v1/live`)
  await new Promise((resolve) => browser.once('message', resolve))
  // It reads nothing any more, as one without a network: ws itself would wait for half a minute.
  browser.pause()
  await hub.close()
  browser.terminate()
}, 15_000)
