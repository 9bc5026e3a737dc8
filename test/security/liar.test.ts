import { waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { bearer, call, firebreak } from './call.ts'
import { RawSensor } from './raw-sensor.ts'
import { startVictim, type Victim } from './victims.ts'

vi.setConfig({ testTimeout: 180_000, hookTimeout: 180_000 })

const app = 'an-app-token-4711-0815'
const small = 'a-token-of-two-processes'
/** A token for each lie, and one for who tells many. */
const lies = [
  'counts',
  'keys',
  'bytes',
  'hellos',
  'tables',
  'frames',
  'volume',
  'clusters',
  'names',
  'claims',
  'again',
] as const
const lying = (what: string) => `a-token-that-lies-4711-${what}`
const [teams, apis] = ['a-token-of-a-team-4711', 'a-token-of-its-api-4711']
const operator = 'an-operators-token-4711'
let hub: Victim

beforeAll(async () => {
  hub = await startVictim('hub', {
    tokens: {
      apps: [
        { name: 'shop', token: app },
        ...lies.map((what) => ({ name: `lying-${what}`, token: lying(what) })),
        { name: 'small', token: small, maxProcesses: 2 },
        { name: 'team', token: teams, services: ['team'] },
        { name: 'api', token: apis, services: ['team/api'] },
      ],
      people: [{ name: 'olga', role: 'operator', token: operator }],
    },
    initialRules: [
      { id: 'limited', prefix: 'limited', threshold: 1000, strategy: { strategy: 'RateLimit', limit: 500 } },
      { id: 'auto', prefix: 'auto', threshold: 'auto' },
      { id: 'cached', prefix: 'cached', threshold: 1000, strategy: 'LocalCache', minHoldMs: 60_000 },
    ],
    maxInstanceAccessesPerSecond: 1_000_000,
    maxInstanceKeysPerSecond: 1000,
    maxInstanceClusters: 20,
    maxTrackedKeys: 5000,
  })
})
afterAll(() => hub.child.stop())

const open = (instanceId: string, token = app) => new RawSensor(hub.ports.http, { instanceId, token }).answered()
const ask = async (path: string) => (await call(hub.ports.http, 'GET', path, bearer(operator))).body

/** The last word about a key that a sensor was told. */
function told({ tables }: RawSensor, key: string): { onlyInstance?: string } | 'removed' | undefined {
  type Delta = { set: { key: string; onlyInstance?: string }[]; removed: { key: string }[] }
  for (const delta of (tables as Delta[]).toReversed()) {
    const entry = delta.set.find((one) => one.key === key)
    if (entry !== undefined) return entry
    if (delta.removed.some((one) => one.key === key)) return 'removed'
  }
  return undefined
}

test('what one process counts limits a key in that process only; a second one makes it a limit for all', async () => {
  const [liar, honest] = [await open('liar-1'), await open('honest-1')]
  liar.report({ 'limited-1': 100_000 })
  await waitFor(() => told(honest, 'limited-1'))
  expect(told(honest, 'limited-1')).toMatchObject({ onlyInstance: 'liar-1' })
  honest.report({ 'limited-1': 5 })
  await waitFor(() => (told(honest, 'limited-1') as { onlyInstance?: string }).onlyInstance === undefined)
  liar.close()
  honest.close()
})

test('a claim is about keys that the process has reported, and none takes a key from others', async () => {
  const [liar, honest] = [await open('liar-2'), await open('honest-2')]
  liar.send('claim', { redisClusterId: 'main', key: 'cached-never-seen', ruleId: 'cached', heat: 1e9 })
  await waitFor(() => told(liar, 'cached-never-seen') === 'removed')
  honest.report({ 'cached-2': 5000 })
  await waitFor(() => told(honest, 'cached-2'))
  const before = told(honest, 'cached-2')
  // A claim under a wrong rule was answered by a removal for the whole service.
  liar.report({ 'cached-2': 1 })
  liar.send('claim', { redisClusterId: 'main', key: 'cached-2', ruleId: 'none', heat: 1e9 })
  liar.send('claim', { redisClusterId: 'main', key: 'cached-last', ruleId: 'cached', heat: 1e9 })
  await waitFor(() => told(honest, 'cached-last') === 'removed')
  expect(told(honest, 'cached-2')).toEqual(before)
  liar.close()
  honest.close()
})

const statusOf = (told: object) => ({
  sentAt: Date.now(),
  epoch: '',
  version: 0,
  isOff: false,
  counters: {
    ...{ reads: 0, writes: 0, localHits: 0, loads: 0, bypasses: 0, invalidations: 0, flushes: 0 },
    ...{ limited: 0, copyReads: 0, droppedReports: 0, errors: 0 },
  },
  keys: [],
  watchers: [],
  ...told,
})
const effectOf = (key: string) => ({
  redisClusterId: 'main',
  key,
  ...{ localHits: 1, redisReads: 1, bytesSaved: 0, limited: 0, errors: 0 },
})

test('what no frame of ours holds is refused unread: long names, long frames, more slots than a cluster has', async () => {
  const liar = await open('liar-long')
  const long = 'x'.repeat(300)
  liar.send('claim', { redisClusterId: 'main', key: 'k'.repeat(5000), ruleId: 'cached', heat: 9e9 })
  liar.send('status', statusOf({ nodeCounts: { [long]: 2 } }))
  liar.send('status', statusOf({ epoch: long }))
  liar.send('status', statusOf({ keys: [effectOf('x'.repeat(9_000_000))] }))
  const node = { redisClusterId: 'main', spanMs: 1000, roundTripMs: 1 }
  const nodes = Array.from({ length: 5 }, (_, nth) => ({
    ...node,
    node: `n${nth}`,
    slots: [[0, 16_383]] as [number, number][],
  }))
  liar.send('load', { nodes })
  await waitFor(() => liar.refused.length === 5)
  expect(liar.refused.map(({ code }) => code)).toEqual(Array(5).fill('FB_FRAME_INVALID'))
  expect(liar.refused.map(({ reason }) => reason.match(/key|nodeCounts|epoch|8388608|16384 slots/)?.[0])).toEqual([
    'key',
    'nodeCounts',
    'epoch',
    '8388608',
    '16384 slots',
  ])
  liar.close()
})

test.each([
  ['counts', 'maxInstanceAccessesPerSecond', (liar: RawSensor) => liar.report({ k: 11_000_000 })],
  [
    'keys',
    'maxInstanceKeysPerSecond',
    (liar: RawSensor) => liar.report(Object.fromEntries(Array.from({ length: 12_000 }, (_, n) => [`k${n}`, 1]))),
  ],
  [
    'bytes',
    '128 bytes for each of maxInstanceKeysPerSecond',
    (liar: RawSensor) => {
      for (let n = 0; n < 100; n++) liar.report({ [`${n}${'x'.repeat(40_000)}`]: 1 })
    },
  ],
  [
    'hellos',
    'more than 2 hello frames a second',
    (liar: RawSensor) => {
      for (let n = 0; n < 100; n++) liar.send('hello', liar.hello)
    },
  ],
  [
    'tables',
    'more than 10 resync frames a second',
    (liar: RawSensor) => {
      for (let n = 0; n < 200; n++) liar.send('resync', { reason: 'again' })
    },
  ],
  [
    'frames',
    'more than 1000 frames a second',
    (liar: RawSensor) => {
      for (let n = 0; n < 12_000; n++) liar.send('load', { nodes: [] })
    },
  ],
  [
    'volume',
    'bytes of statuses and other frames a second',
    (liar: RawSensor) => {
      const status = statusOf({ keys: [effectOf('x'.repeat(6_000_000))] })
      for (let n = 0; n < 12; n++) liar.send('status', status)
    },
  ],
  [
    'names',
    'names more clusters than maxInstanceClusters',
    (liar: RawSensor) => {
      const nodeCounts = Object.fromEntries(Array.from({ length: 25 }, (_, n) => [`named-${n}`, 2]))
      liar.send('status', statusOf({ nodeCounts }))
    },
  ],
  [
    'clusters',
    'maxInstanceClusters',
    (liar: RawSensor) => {
      for (let n = 0; n < 25; n++) liar.report({ k: 1 }, { redisClusterId: `cluster-${n}` })
    },
  ],
  [
    'claims',
    'keys a second',
    (liar: RawSensor) => {
      for (let n = 0; n < 600; n++)
        liar.send('claim', { redisClusterId: 'main', key: `c${n}`, ruleId: 'cached', heat: 9e9 })
    },
  ],
])(
  'more %s than a process can have: it is cut off, told about, and does not come back at once',
  async (what, bound, lie) => {
    const liar = await open(`liar-${what}`, lying(what))
    lie(liar)
    await waitFor(() => liar.closed === '1008 over its limits')
    const { alarms } = await ask('/v1/alarms')
    const alarm = alarms.find(({ id }: { id: string }) => id === `sensor:shop/host-1/liar-${what}`)!
    expect(alarm.cause).toContain(bound)
    expect(alarm.retry).toContain(`firebreak hosts bar shop/host-1/liar-${what}`)
    expect((await open(`liar-${what}`, lying(what))).closed).toBe('1008 over its limits')
    const { events } = await ask('/v1/history?limit=10000')
    const rollbacks = events.filter(({ kind }: { kind: string }) => kind === 'rollback')
    expect(rollbacks.length).toBeLessThan(10)
  },
)

test('going on under another name helps five times: then the token has no room for processes that were not known', async () => {
  const known = await open('known', lying('again'))
  for (let nth = 0; nth < 5; nth++) {
    const liar = await open(`again-${nth}`, lying('again'))
    liar.report({ k: 11_000_000 })
    await waitFor(() => liar.closed === '1008 over its limits')
  }
  const next = await open('again-5', lying('again'))
  expect(next.refused[0]).toMatchObject({ code: 'FB_SENSOR_BOUNDS', reason: expect.stringContaining('were cut off') })
  const { alarms } = await ask('/v1/alarms')
  expect(alarms.find(({ id }) => id === 'token:lying-again')!.cause).toContain('5 processes under the token')
  const other = await open('honest-5')
  expect([known.closed, other.isWelcome]).toEqual([undefined, true])
  known.close()
  other.close()
})

test('alarms that processes tell of do not keep out those of the hub', async () => {
  for (let nth = 0; nth < 40; nth++) {
    const alarms = Array.from({ length: 10 }, (_, code) => ({ room: 'app', code: `LIE_${code}`, message: 'a lie' }))
    const body = { serviceId: 'shop', hostId: `invented-${nth}`, validMs: 5000, alarms }
    expect((await call(hub.ports.http, 'POST', '/v1/alarms', bearer(app), body)).status).toBe(204)
  }
  const { alarms } = await ask('/v1/alarms')
  const told = alarms.filter(({ id }) => id.startsWith('app:shop/invented-'))
  expect([told.length, alarms.some(({ id }) => id === 'crowd:shop')]).toEqual([20, true])
})

test('a process whose names are joined to those of one of another service is another one', async () => {
  const names = { serviceId: 'team/api', hostId: 'h', instanceId: 'p' }
  const open = (hello: object, token: string) => new RawSensor(hub.ports.http, { ...hello, token }).answered()
  const honest = await open(names, apis)
  const liar = await open({ ...names, serviceId: 'team', hostId: 'api/h' }, teams)
  liar.report({ k: 11_000_000 })
  await waitFor(() => liar.closed !== undefined)
  const again = await open(names, apis)
  again.report({ 'k-of-api': 5 })
  const tell = async (serviceId: string, hostId: string, token: string, alarms: object[]) =>
    (await call(hub.ports.http, 'POST', '/v1/alarms', bearer(token), { serviceId, hostId, alarms })).status
  expect(await tell('team/api', 'h', apis, [{ room: 'app', code: 'FB_X', message: 'of the api' }])).toBe(204)
  expect(await tell('team', 'api/h', teams, [])).toBe(204)
  const causes = (await ask('/v1/alarms')).alarms.map(({ cause }) => cause)
  expect(causes).toContainEqual(expect.stringContaining('of the api'))
  expect([honest.isWelcome, again.isWelcome, again.refused]).toEqual([true, true, []])
  for (const sensor of [honest, again]) sensor.close()
})

test('a process that is barred is out at once, and its reports over HTTP too, until it is let in again', async () => {
  const env = { FIREBREAK_HUB: `http://127.0.0.1:${hub.ports.http}`, FIREBREAK_TOKEN: operator }
  const liar = await open('barred-1')
  expect((await firebreak(['hosts', 'bar', 'shop/host-1/barred-1', '--why', 'it lies'], env)).code).toBe(0)
  await waitFor(() => liar.closed === '1008 barred')
  expect((await open('barred-1')).refused[0]).toMatchObject({ code: 'FB_SENSOR_BARRED' })
  const text = `# ${Date.now()},${Date.now()},shop,host-1,barred-1\n# main\nk:5\n`
  const post = () =>
    call(hub.ports.http, 'POST', '/v1/reports', { ...bearer(app), 'content-type': 'text/plain; v=2' }, text)
  expect((await post()).body.code).toBe('FB_SENSOR_BARRED')
  expect((await firebreak(['hosts', 'barred'], env)).output).toContain('it lies')
  expect((await firebreak(['hosts', 'unbar', 'shop/host-1/barred-1'], env)).code).toBe(0)
  expect((await post()).status).toBe(204)
  expect((await open('barred-1')).isWelcome).toBe(true)
})

test('what one process says of the load of a node, asked or not, moves nothing that two others do not bear out', async () => {
  const sensor = (instanceId: string, canProbe = true) =>
    new RawSensor(hub.ports.http, {
      ...{ instanceId, hostId: instanceId, token: app },
      ...{ redisClusterIds: ['loaded'], canProbe },
    }).answered()
  const load = (cpuMs: number, slots: [number, number]) => ({
    nodes: [
      {
        redisClusterId: 'loaded',
        node: 'redis:1',
        slots: [slots],
        spanMs: 1000,
        commands: 5000,
        cpuMs,
        roundTripMs: 0.2,
      },
    ],
  })
  const liars = [await sensor('load-liar'), await sensor('load-unasked', false)]
  const honest = [await sensor('load-1'), await sensor('load-2')]
  const timer = setInterval(() => {
    for (const one of honest) one.send('load', load(50, [0, 16_383]))
    for (const one of liars) one.send('load', load(1000, [0, 100]))
    for (const one of liars) one.send('load', load(1000, [0, 16_383]))
  }, 100)
  const seen = new Set<number>()
  const measured = new Set<number>()
  await waitFor(
    async () => {
      const { nodes } = (await ask('/v1/autopilot')) as unknown as {
        nodes: { redisClusterId: string; utilisation: number; measuredAt: number }[]
      }
      for (const node of nodes.filter(({ redisClusterId }) => redisClusterId === 'loaded')) {
        seen.add(node.utilisation)
        measured.add(node.measuredAt)
      }
      return measured.size > 5
    },
    { timeoutMs: 60_000 },
  )
  clearInterval(timer)
  expect([...seen]).toEqual([0.05])
  for (const one of [...liars, ...honest]) one.close()
})

const none = { acquired: 0, contended: 0, handedOver: 0, refused: 0, released: 0, renewals: 0, renewalErrors: 0 }
const duration = { count: 0, sumMs: 0, maxMs: 0, buckets: [] }
const locksOf = (instanceId: string, names: readonly string[] = []) => ({
  ...{ version: 1, serviceId: 'shop', hostId: 'host-1', instanceId, validMs: 600_000 },
  held: [],
  waiting: names.map((name) => ({ name, kind: 'lock', owner: 'o'.repeat(1000), waitingMs: 1 })),
  ...{ heldCount: 0, waitingCount: 0 },
  metrics: { ...none, lost: { expired: 0, taken: 0 }, wait: duration, hold: duration },
})
const tell = (path: string, token: string, body: object) =>
  call(hub.ports.http, 'POST', path, bearer(token), body).then(({ status, body: { code } }) => code ?? status)

test('locks and alarms are told by as many processes as report, and not by one that is barred', async () => {
  const alarms = (hostId: string) => ({ serviceId: 'shop', hostId, validMs: 5000, alarms: [] })
  const told = []
  for (const nth of [1, 2, 3, 1]) told.push(await tell('/v1/locks', small, locksOf(`locks-${nth}`)))
  for (const nth of [1, 2, 3, 1]) told.push(await tell('/v1/alarms', small, alarms(`alarms-${nth}`)))
  expect(told).toEqual([204, 204, 'FB_SENSOR_BOUNDS', 204, 204, 204, 'FB_SENSOR_BOUNDS', 204])
  const ids = (await ask('/v1/alarms')).alarms.map(({ id }) => id)
  expect(ids).toEqual(expect.arrayContaining(['token:small/locks', 'token:small/alarms']))
  const id = 'shop/host-1/barred-2'
  expect((await call(hub.ports.http, 'POST', '/v1/barred', bearer(operator), { id })).status).toBe(201)
  expect([
    await tell('/v1/locks', app, locksOf('barred-2')),
    await tell('/v1/alarms', app, alarms('host-1')),
    await tell('/v1/alarms', app, alarms('host-2')),
  ]).toEqual(['FB_SENSOR_BARRED', 'FB_SENSOR_BARRED', 204])
  expect((await call(hub.ports.http, 'DELETE', `/v1/barred/${encodeURIComponent(id)}`, bearer(operator))).status).toBe(
    204,
  )
})

test('reports of locks have a bound together, and a service has half of it', async () => {
  const names = Array.from({ length: 450 }, (_, n) => `${n}${'n'.repeat(1000)}`)
  const statuses = new Set<unknown>()
  for (let nth = 0; nth < 40 && !statuses.has('FB_LOCK_BOARD_FULL'); nth++)
    statuses.add(await tell('/v1/locks', app, locksOf(`full-${nth}`, names)))
  expect([...statuses]).toEqual([204, 'FB_LOCK_BOARD_FULL'])
  expect(await tell('/v1/locks', app, { ...locksOf('other-1', names), serviceId: 'cart' })).toBe(204)
})

test('keys of all clusters together stay within one bound', async () => {
  const sensors = await Promise.all([0, 1, 2].map((n) => open(`many-${n}`)))
  for (const [nth, sensor] of sensors.entries()) {
    const keys = Object.fromEntries(Array.from({ length: 3000 }, (_, n) => [`key-${n}`, 1]))
    sensor.report(keys, { redisClusterId: `part-${nth}` })
  }
  await waitFor(async () => (await ask('/v1/overview')).ingest.trackedKeys > 4000)
  expect((await ask('/v1/overview')).ingest.trackedKeys).toBeLessThanOrEqual(5500)
  for (const sensor of sensors) sensor.close()
})

test('a stolen token has no room for invented processes where it says how many its application has', async () => {
  const openSmall = (instanceId: string) => new RawSensor(hub.ports.http, { instanceId, token: small }).answered()
  const own = [await openSmall('own-1'), await openSmall('own-2')]
  expect(own.map(({ isWelcome }) => isWelcome)).toEqual([true, true])
  const invented = await openSmall('invented-1')
  expect(invented.refused[0]).toMatchObject({
    code: 'FB_SENSOR_BOUNDS',
    reason: expect.stringContaining('maxProcesses'),
  })
  // Nor by a report of its own.
  const post = (token: string, instanceId: string, agoMs = 0) => {
    const report = `# ${Date.now() - agoMs},${Date.now()},shop,h,${instanceId}\n# main\nlimited-9:100000\n`
    return call(hub.ports.http, 'POST', '/v1/reports', { ...bearer(token), 'content-type': 'text/plain; v=2' }, report)
  }
  expect((await post(small, 'invented-2')).status).toBe(429)
  // Nor does one that was refused take a place among the processes that a hub has room for.
  expect((await post(app, 'invented-3', 3_600_000)).body.code).toBe('FB_REPORT_REFUSED')
  const { hosts } = await ask('/v1/hosts')
  expect(hosts.filter(({ instanceId }) => instanceId.startsWith('invented-'))).toEqual([])
  const { alarms } = await ask('/v1/alarms')
  expect(alarms.map(({ id }) => id)).toContain('token:small')
  // Its own processes come and go as before.
  own[0]!.close()
  expect((await openSmall('own-1')).isWelcome).toBe(true)
})
