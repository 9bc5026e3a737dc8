// `npm run floods [-- --at FOLDER] [-- NAME …] [--json]`: what each flood of the threat model costs a server, of
// this checkout or of another that is built, in memory over that of the idle server and in time of its processor. A server of its own for each flood; a
// small flood comes first, so that what a process takes once for its first connections is not in the figures.
import { connect, type Socket } from 'node:net'
import { parseArgs } from 'node:util'
import { startRedis } from '@firebreak/testkit'
import { call } from './call.ts'
import { type HeldRequest, holdOpen } from './hold-open.ts'
import { RawSensor } from './raw-sensor.ts'
import { startVictim, type Victim, type VictimKind } from './victims.ts'

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { at: { type: 'string' }, json: { type: 'boolean', default: false } },
})

const megabyte = 1024 * 1024
const token = 'a-token-that-nobody-guesses'
const person = `${token}-too`
const pause = (ms: number) => new Promise((resolve) => setTimeout(resolve, ms))

const redis = await startRedis()
const closedRedis = await startRedis({ args: ['--requirepass', 'of-the-server'] })
const upstream = `redis://127.0.0.1:${redis.port}`

const optionsOf: Record<string, readonly [VictimKind, object]> = {
  hub: [
    'hub',
    { tokens: { apps: [{ name: 'shop', token }], people: [{ name: 'ann', role: 'admin', token: person }] } },
  ],
  limits: ['limits', { token }],
  ids: ['ids', { token }],
  proxy: ['proxy', { upstream, port: 0, metricsPort: 0 }],
  'proxy with users': ['proxy', { upstream, port: 0, users: [{ name: 'default', password: 'of-the-proxy' }] }],
  'proxy before NOAUTH': ['proxy', { upstream: `redis://127.0.0.1:${closedRedis.port}`, port: 0 }],
}

/** A flood; what it gives stands beside its figures. */
interface Flood {
  readonly name: string
  readonly at: string
  /** Something small of the same kind, before memory is looked at. */
  first?(victim: Victim): Promise<unknown>
  run(victim: Victim): Promise<string | undefined>
}

function held(name: string, at: string, request: (ports: Victim['ports']) => HeldRequest): Flood {
  return {
    name,
    at,
    first: (victim) => holdOpen(victim, { ...request(victim.ports), bytes: 64 * 1024 }, 40, 500, 0),
    async run(victim) {
      const { open } = await holdOpen(victim, request(victim.ports), 40, 5000, 0)
      return `${open} of 40 open`
    },
  }
}

const post = (path: string) => (ports: Victim['ports']) => ({
  port: ports.http,
  head: `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${ports.http}\r\nContent-Type: text/plain\r\nContent-Length: ${16 * megabyte}\r\n\r\n`,
  bytes: 15 * megabyte,
})

function upgrade({ http: port }: Victim['ports']): HeldRequest {
  const message = Buffer.from([0x82, 0xff, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0])
  message.writeBigUInt64BE(BigInt(15 * megabyte), 2)
  const head = `GET /v1/sensor HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==\r\n\r\n`
  return { port, head: Buffer.concat([Buffer.from(head), message]), bytes: 14 * megabyte }
}

const resp = (head: string, words?: string) => (ports: Victim['ports']) => ({
  port: ports.resp,
  head,
  bytes: 15 * megabyte,
  ...(words !== undefined && { piece: Buffer.from(words.repeat(Math.floor(65_536 / words.length))) }),
})

/** Opens connections that send a byte now and then, or nothing; gives how many are open after `forMs`. */
async function drip(port: number, count: number, head: string, piece: string, forMs: number): Promise<string> {
  const sockets: Socket[] = []
  const startedAt = performance.now()
  for (let nth = 0; nth < count; nth++) {
    // Read, or the end of one that is closed is not seen.
    const socket = connect({ port, host: '127.0.0.1' }).resume()
    socket.on('error', () => {})
    if (head !== '') socket.write(head)
    sockets.push(socket)
    if (nth % 200 === 199) await pause(10)
  }
  const open = () => sockets.filter((socket) => !socket.destroyed && socket.readyState !== 'closed').length
  while (performance.now() - startedAt < forMs && open() > 0) {
    await pause(1000)
    if (piece !== '') for (const socket of sockets) if (!socket.destroyed) socket.write(piece)
  }
  const told = `${open()} of ${count} open after ${Math.round((performance.now() - startedAt) / 1000)} s`
  for (const socket of sockets) socket.destroy()
  return told
}

const httpHead = (port: number) => `GET /livez HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nX-Slow: `
const httpBody = (path: string) => (port: number) =>
  `POST ${path} HTTP/1.1\r\nHost: 127.0.0.1:${port}\r\nAuthorization: Bearer ${token}\r\nContent-Type: text/plain\r\nContent-Length: 9000\r\n\r\n`

const dripping = (at: string, name: string, head: (port: number) => string, kind: 'http' | 'resp' = 'http'): Flood => ({
  name,
  at,
  run: ({ ports }) => drip(ports[kind], 200, head(ports[kind]), 'a', 45_000),
})
const silent = (at: string, kind: 'http' | 'resp' = 'http'): Flood => ({
  name: `5,000 silent connections${kind === 'resp' ? ' to RESP' : ''}`,
  at,
  first: ({ ports }) => drip(ports[kind], 200, '', '', 500),
  run: ({ ports }) => drip(ports[kind], 5000, '', '', 90_000),
})

/** Keys of one hash where a multiplication takes the top bit of a word to itself and nowhere else. */
function* collidingKeys(step: 8 | 16, bytes: number): Generator<string> {
  // 1.8 MB of keys that differ in which of their pieces are flipped.
  const [length, flips] = step === 8 ? [112, [3, 6, 7]] : [224, [3, 10, 15]]
  for (let index = 0; index * length < bytes; index++) {
    const key = Buffer.alloc(length, 0x61)
    for (let bit = 0; bit < length / step; bit++) {
      if (((index >>> bit) & 1) === 0) continue
      for (const [nth, at] of flips.entries()) key[bit * step + at]! ^= nth === 1 ? 0x01 : 0x80
    }
    yield key.toString('latin1')
  }
}

async function openSensor({ ports }: Victim, instanceId: string): Promise<RawSensor> {
  return await new RawSensor(ports.http, { instanceId, token }).answered()
}

/** The text report of keys, whose bytes are percent-encoded. */
function textReport(keys: Iterable<string>): string {
  const now = Date.now()
  const lines = [...keys].map(
    (key) =>
      `${[...Buffer.from(key, 'latin1')].map((byte) => (byte === 0x61 ? 'a' : `%${byte.toString(16).padStart(2, '0')}`)).join('')}:1`,
  )
  return `# ${now},${now},shop,h\n# main\n${lines.join('\n')}\n`
}

const collisions = (step: 8 | 16): Flood => ({
  name: `one report of keys that collide (${step} bytes a piece)`,
  at: 'hub',
  first: (victim) =>
    call(victim.ports.http, 'POST', '/v1/reports', { authorization: `Bearer ${token}` }, textReport(['a'])),
  async run({ ports }) {
    const body = textReport(collidingKeys(step, step === 8 ? 1_350_000 : 1_480_000))
    const { status } = await call(ports.http, 'POST', '/v1/reports', { authorization: `Bearer ${token}` }, body)
    await call(ports.http, 'GET', '/livez')
    return `${(body.length / 1e6).toFixed(1)} MB, ${status}`
  },
})

/** Beside the colliding ones: as many keys of as many bytes that nobody chose. */
const harmless: Flood = {
  ...collisions(8),
  name: 'one report of as many keys that do not collide',
  async run({ ports }) {
    const keys = [...collidingKeys(8, 1_350_000)].map((key, nth) => `${nth}`.padStart(key.length, 'a'))
    const body = textReport(keys)
    const { status } = await call(ports.http, 'POST', '/v1/reports', { authorization: `Bearer ${token}` }, body)
    await call(ports.http, 'GET', '/livez')
    return `${(body.length / 1e6).toFixed(1)} MB, ${status}`
  },
}

const lyingSensor: Flood = {
  name: 'a sensor with a million keys',
  at: 'hub',
  async run(victim) {
    const sensor = await openSensor(victim, 'liar')
    for (let nth = 0; nth < 1_000_000 && sensor.closed === undefined; nth += 10_000) {
      sensor.report(Object.fromEntries(Array.from({ length: 10_000 }, (_, index) => [`user:${nth + index}:cart`, 1])), {
        redisClusterId: `cluster-${nth / 10_000}`,
      })
      await pause(20)
    }
    await pause(3000)
    const told = sensor.closed === undefined ? 'goes on' : 'cut off'
    sensor.close()
    return told
  },
}

const longNames: Flood = {
  name: 'a sensor with 160 MB of long keys',
  at: 'hub',
  async run(victim) {
    const sensor = await openSensor(victim, 'long')
    for (let nth = 0; nth < 40 && sensor.closed === undefined; nth++) {
      const keys = Array.from({ length: 100 }, (_, index) => [`${nth}-${index}-${'x'.repeat(40_000)}`, 1])
      sensor.report(Object.fromEntries(keys))
      await pause(50)
    }
    await pause(3000)
    const told = sensor.closed === undefined ? 'goes on' : 'cut off'
    sensor.close()
    return told
  },
}

const hellos: Flood = {
  name: 'a sensor with 10,000 hellos',
  at: 'hub',
  async run(victim) {
    const sensor = await openSensor(victim, 'hellos')
    for (let nth = 0; nth < 10_000 && sensor.closed === undefined; nth++) {
      sensor.send('hello', sensor.hello)
      if (nth % 100 === 99) await pause(5)
    }
    await pause(3000)
    const told = sensor.closed === undefined ? 'goes on' : 'cut off'
    sensor.close()
    return told
  },
}

/** The dearest expressions that are within the bound of their time, of which each version takes what it takes. */
const expressions = [
  'a.{12}c',
  '(a|b|c)*a(a|b|c){100}c',
  '(.{0,120}){2}c',
  `${'(a?b?c?)'.repeat(60)}x`,
  '.*a.{400}c',
  '(a{0,40}){12}c',
  '((.{0,9}){0,9}){0,9}x',
]
const regexRule: Flood = {
  name: '1,000 keys of 256 characters under the dearest regular expression',
  at: 'hub',
  async run(victim) {
    const auth = { authorization: `Bearer ${person}` }
    const keys = Array.from({ length: 1000 }, (_, nth) =>
      Array.from({ length: 256 }, (_, at) => 'abc'[(nth * 7919 + at * at * 31 + (nth >> (at % 10))) % 3]!).join(''),
    )
    let dearest = { cpuMs: 0, what: 'none is taken' }
    for (const regex of expressions) {
      const path = '/v1/rules/dear'
      const body = { regex, threshold: 1_000_000, strategy: 'Observe' }
      const { status } = await call(victim.ports.http, 'PUT', path, auth, body)
      if (status >= 300) continue
      const before = victim.cpuMs()
      const report = textReport(keys.map((key) => `${key}${expressions.indexOf(regex)}`))
        .replaceAll(/%62/g, 'b')
        .replaceAll(/%63/g, 'c')
      await call(victim.ports.http, 'POST', '/v1/reports', { authorization: `Bearer ${token}` }, report)
      await pause(1500)
      await call(victim.ports.http, 'GET', '/livez')
      const cpuMs = victim.cpuMs() - before
      if (cpuMs > dearest.cpuMs) dearest = { cpuMs, what: `${regex}: ${cpuMs} ms` }
    }
    return dearest.what
  },
}

const signIns: Flood = {
  name: '2,000 sign-ins with a wrong password',
  at: 'hub',
  first: ({ ports }) => call(ports.http, 'GET', '/livez'),
  async run({ ports }) {
    const statuses = new Map<number, number>()
    for (let nth = 0; nth < 2000; nth += 50) {
      const answers = await Promise.all(
        Array.from({ length: 50 }, () =>
          call(ports.http, 'POST', '/v1/session', {}, { name: 'ann', password: `guess ${nth}` }),
        ),
      )
      for (const { status } of answers) statuses.set(status, (statuses.get(status) ?? 0) + 1)
    }
    return [...statuses].map(([status, count]) => `${count} times ${status}`).join(', ')
  },
}

const passwords = (at: string): Flood => ({
  name: '10,000 AUTH with a wrong password',
  at,
  run: ({ ports }) =>
    new Promise((resolve) => {
      let answers = 0
      let left = 100
      for (let nth = 0; nth < 100; nth++) {
        const socket = connect(ports.resp, '127.0.0.1')
        socket.on('data', (chunk) => (answers += chunk.toString().match(/^-/gm)?.length ?? 0))
        socket.on('error', () => {})
        socket.on('close', () => --left === 0 && resolve(`${answers} answered`))
        setTimeout(() => socket.destroy(), 5000)
        socket.write(`*2\r\n$4\r\nAUTH\r\n$5\r\nwrong\r\n`.repeat(100))
      }
    }),
})

const short = '*1\r\n$4\r\nPING\r\n'
const floods: readonly Flood[] = [
  held('40 bodies, `POST /v1/reports`', 'hub', post('/v1/reports')),
  held('40 large frames before hello', 'hub', upgrade),
  held('40 bodies, `POST /v1/limits/policy`', 'limits', post('/v1/limits/policy')),
  held('40 bodies over HTTP', 'ids', post('/nowhere')),
  held('40 large commands over RESP', 'ids', resp('*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$15728640\r\n')),
  held('40 times `PING` without end over RESP', 'ids', resp(short, short)),
  held('40 bodies to the metrics', 'proxy', post('/metrics')),
  held('40 times `GET` without end', 'proxy with users', resp('', '*2\r\n$3\r\nGET\r\n$1\r\nk\r\n')),
  held(
    '40 times `MSET` of a million arguments',
    'proxy before NOAUTH',
    resp('*1000001\r\n$4\r\nMSET\r\n', '$1\r\na\r\n'),
  ),
  held('40 times `PING` without end', 'proxy before NOAUTH', resp(short, short)),
  dripping('hub', '200 heads, a byte a second', httpHead),
  dripping('hub', '200 bodies, a byte a second', httpBody('/v1/reports')),
  dripping('limits', '200 heads, a byte a second', httpHead),
  dripping('limits', '200 bodies, a byte a second', httpBody('/v1/limits/policy')),
  dripping('ids', '200 heads, a byte a second', httpHead),
  dripping('ids', '200 commands over RESP, a byte a second', () => '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n', 'resp'),
  dripping('proxy', '200 heads to the metrics, a byte a second', httpHead),
  dripping(
    'proxy with users',
    '200 commands, a byte a second',
    () => '*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$5000\r\n',
    'resp',
  ),
  silent('hub'),
  silent('limits'),
  silent('ids'),
  silent('ids', 'resp'),
  silent('proxy'),
  silent('proxy with users', 'resp'),
  signIns,
  passwords('ids'),
  passwords('proxy with users'),
  collisions(8),
  collisions(16),
  harmless,
  lyingSensor,
  longNames,
  hellos,
  regexRule,
]

const wanted = floods.filter(
  ({ at, name }) => positionals.length === 0 || positionals.some((word) => `${at}: ${name}`.includes(word)),
)
for (const flood of wanted) {
  const [kind, options] = optionsOf[flood.at]!
  const victim = await startVictim(kind, options, values.at)
  await flood.first?.(victim)
  await pause(500)
  const [rssBefore, cpuBefore] = [victim.rss(), victim.cpuMs()]
  let peak = rssBefore
  const sampler = setInterval(() => (peak = Math.max(peak, victim.rss())), 20)
  const note = await flood.run(victim).catch((error: Error) => error.message)
  clearInterval(sampler)
  const figures = {
    port: flood.at,
    flood: flood.name,
    memoryMiB: Number(((peak - rssBefore) / megabyte).toFixed(1)),
    cpuS: Number(((victim.cpuMs() - cpuBefore) / 1000).toFixed(2)),
    note,
  }
  const { port, flood: name, memoryMiB, cpuS } = figures
  process.stdout.write(
    values.json ? `${JSON.stringify(figures)}\n` : `| ${port}: ${name} | ${memoryMiB} MiB | ${cpuS} s | ${note} |\n`,
  )
  await victim.child.stop()
}
await redis.stop()
await closedRedis.stop()
process.exit(0)
