import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { fileURLToPath } from 'node:url'
import type { ServiceTable } from '@firebreak/hub'
import { type GuardedChild, redisCli, startChild, startRedis, startSource, waitFor } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const tokens = {
  apps: [
    { name: 'shop', token: 'shop-token-0123456789', services: ['shop'], clusters: ['main'] },
    { name: 'web', token: 'web-token-0123456789ab', services: ['web'] },
  ],
  people: [{ name: 'ann', token: 'ann-token-0123456789', role: 'operator' }],
}
const rules = ['product_', 'caf%'].map((prefix, n) => ({ id: `r${n}`, prefix, threshold: 100, minHoldMs: 600_000 }))

async function startHub(): Promise<string> {
  const settings = JSON.stringify({ initialRules: rules, tokens, maxTableWaits: 2 })
  const child = startSource(new URL('./hub-process.ts', import.meta.url), [settings])
  ends.push(() => child.stop())
  return (await child.printed(/listening (\S+)/))[1]!
}

async function call<Answer>(url: string, token: string, init: RequestInit = {}) {
  const headers = { ...init.headers, authorization: `Bearer ${token}` }
  const response = await fetch(url, { ...init, headers })
  const text = await response.text()
  return { status: response.status, body: (text === '' ? undefined : JSON.parse(text)) as Answer }
}

const [shop, web] = tokens.apps.map(({ token }) => token) as [string, string]
const ann = tokens.people[0]!.token

function report(hub: string, key: string, count: number, token = shop, service = 'shop') {
  const body = `# ${Date.now()},${Date.now()},${service},host-1\n# main\n${key}:${count}\n`
  return call(`${hub}/v1/reports`, token, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })
}

function switchTo(hub: string, isOff: boolean) {
  const headers = { 'content-type': 'application/json' }
  return call(`${hub}/v1/switch`, ann, { method: 'POST', headers, body: JSON.stringify({ isOff }) })
}

test('an app token reads the table of its own service and cluster, and nothing else', async () => {
  const hub = await startHub()
  expect((await report(hub, 'product_1', 500)).status).toBe(204)
  const own = () => call<ServiceTable>(`${hub}/v1/table?service=shop&cluster=main`, shop)
  const { body } = await waitFor(async () => {
    const answer = await own()
    return answer.body.clusters['main'] !== undefined && answer
  })
  expect(body).toMatchObject({ isOff: false, validMs: 60_000, intervalMs: expect.any(Number) })
  expect(body.clusters['main']).toMatchObject([{ strategy: 'LocalCache', keys: ['product_1'] }])
  const refusals = await Promise.all(
    [
      [`service=shop`, web],
      [`service=shop&cluster=other`, shop],
      ['', shop],
      ['service=shop&waitMs=60001', shop],
      ['service=shop', 'nobodys-token-0123456789'],
    ].map(([query, token]) => call<{ code: string }>(`${hub}/v1/table?${query}`, token!)),
  )
  expect(refusals.map(({ status, body: { code } }) => [status, code])).toEqual([
    [403, 'FB_SCOPE_REFUSED'],
    [403, 'FB_SCOPE_REFUSED'],
    [400, 'FB_INPUT_INVALID'],
    [400, 'FB_INPUT_INVALID'],
    [401, 'FB_TOKEN_REFUSED'],
  ])
  // People see the whole table as before, and any service's.
  expect((await call(`${hub}/v1/table`, ann)).body).toMatchObject({ strategies: [{ keys: ['product_1'] }] })
  expect((await call<ServiceTable>(`${hub}/v1/table?service=web`, ann)).body.clusters).toEqual({})
})

test('a call that names the version it has waits for a newer one, or for its time', async () => {
  const hub = await startHub()
  const ask = (query: string) => call<ServiceTable>(`${hub}/v1/table?service=shop&${query}`, shop)
  const { epoch, version } = (await ask('')).body
  const began = performance.now()
  expect((await ask(`version=${version}&epoch=${epoch}&waitMs=300`)).body.version).toBe(version)
  expect(performance.now() - began).toBeGreaterThanOrEqual(290)
  // Of another hub's count, or of one before: at once.
  for (const other of [`version=${version}&epoch=x`, `version=${version + 100}`, 'version=0']) {
    expect((await ask(`${other}&waitMs=60000`)).body.version).toBe(version)
  }
  const waiting = [1, 2].map(() => ask(`version=${version}&waitMs=60000`))
  await waitFor(async () => (await ask(`version=${version}&waitMs=100`)).status === 429)
  await report(hub, 'product_7', 500)
  for (const { body } of await Promise.all(waiting)) {
    expect(body.version).toBeGreaterThan(version)
    expect(body.clusters['main']).toMatchObject([{ keys: ['product_7'] }])
  }
  const last = (await ask('')).body
  const off = ask(`version=${last.version}&waitMs=60000`)
  await switchTo(hub, true)
  expect((await off).body.isOff).toBe(true)
  // A caller that goes leaves its place.
  const gone = new AbortController()
  const now = (await ask('')).body.version
  const left = [1, 2].map(() =>
    fetch(`${hub}/v1/table?service=shop&version=${now}&waitMs=60000`, {
      headers: { authorization: `Bearer ${shop}` },
      signal: gone.signal,
    }).catch(() => 'gone'),
  )
  await waitFor(async () => (await ask(`version=${now}&waitMs=50`)).status === 429)
  gone.abort()
  expect(await Promise.all(left)).toEqual(['gone', 'gone'])
  await waitFor(async () => (await ask(`version=${now}&waitMs=50`)).status === 200)
})

test('a Python service without any of our code closes the loop: its hot key leaves Redis alone', async () => {
  const hub = await startHub()
  const redis = await startRedis()
  ends.push(() => redis.stop())
  // A key that must be written as key text on the way there and back.
  const key = 'caf%: é'
  await redisCli(redis.port, 'SET', key, 'one')
  const demo = startDemo(hub, redis.port, key, shop)
  const lines = () => [...demo.output().matchAll(/answers (\d+), of Redis (\d+), value b'(\w+)'/g)]
  const last = () => lines().at(-1)
  await waitFor(() => Number(last()?.[1]) > 100 && Number(last()?.[2]) <= 3, { what: () => demo.output() })
  // What it has is a second old at most.
  await redisCli(redis.port, 'SET', key, 'two')
  await waitFor(() => last()?.[3] === 'two')
  await switchTo(hub, true)
  await waitFor(() => Number(last()?.[2]) > 100, { what: () => demo.output() })
  await switchTo(hub, false)
  await waitFor(() => Number(last()?.[2]) <= 3, { what: () => demo.output() })
  const stranger = startDemo(hub, redis.port, key, web)
  await stranger.printed(/firebreak: watch: .*403/)
  await stranger.printed(/of Redis [1-9]\d\d/)
})

const threads = `
import random, sys, threading, time
sys.path.insert(0, sys.argv[1])
sys.setswitchinterval(1e-6)
from firebreak_client import Firebreak
firebreak = Firebreak(sys.argv[2], "", "shop", "h", "main", 0.01)
errors = []
def read():
    while firebreak.known.get("version", 0) < 120 and not errors:
        try:
            firebreak.get(b"k%d" % random.randrange(500), lambda name: b"v")
        except Exception as error:
            errors.append(repr(error))
readers = [threading.Thread(target=read, daemon=True) for _ in range(4)]
for reader in readers: reader.start()
for reader in readers: reader.join(60)
print("read up to", firebreak.known, errors, flush=True)
`

test('the Python client survives tables that change under its readers, and answers that are cut off', async () => {
  let version = 0
  const hub = createServer((request, response) => {
    if (request.method === 'POST') return void request.resume().on('end', () => response.writeHead(204).end())
    version++
    const keys = Array.from({ length: 500 }, (_, n) => `k${n}`).filter((_, n) => (n * 7 + version) % 3 > 0)
    const clusters = { main: [{ strategy: 'LocalCache', expireTime: 60, keys }] }
    const text = JSON.stringify({ epoch: 'e', version, isOff: false, validMs: 60_000, intervalMs: 50, clusters })
    response.writeHead(200, { 'content-length': text.length })
    if (version !== 60) return void response.end(text)
    // Ended, not reset: what came before is read.
    response.write(text.slice(0, 100), () => response.socket?.end())
  })
  await new Promise<void>((resolve) => hub.listen(0, '127.0.0.1', resolve))
  ends.push(() => hub.close())
  const url = `http://127.0.0.1:${(hub.address() as AddressInfo).port}`
  const folder = fileURLToPath(new URL('../../examples/python-client', import.meta.url))
  const env = { ...process.env, PYTHONDONTWRITEBYTECODE: '1' }
  const child = startChild('python3', ['-c', threads, folder, url], { env })
  ends.push(() => child.stop())
  await child.printed(/read up to \{'epoch': 'e', 'version': \d{3,}\} \[\]/)
  expect(child.output()).toContain('IncompleteRead')
})

function startDemo(hub: string, redisPort: number, key: string, token: string): GuardedChild {
  const file = fileURLToPath(new URL('../../examples/python-client/demo.py', import.meta.url))
  const env = { ...process.env, FIREBREAK_TOKEN: token, PYTHONDONTWRITEBYTECODE: '1' }
  const demo = startChild('python3', [file, hub, '127.0.0.1', String(redisPort), key], { env })
  ends.push(() => demo.stop())
  return demo
}
