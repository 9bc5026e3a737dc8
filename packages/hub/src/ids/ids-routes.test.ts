import { systemRuntime } from '@firebreak/core'
import { IdClient, SegmentIds, SnowflakeNode, sqliteSegmentStore } from '@firebreak/ids'
import { FakeClock, freePort, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type IdsServer, startIdsServer } from './ids-server.ts'

let server: IdsServer
let clock: FakeClock
let url: string
beforeAll(async () => {
  clock = new FakeClock(Date.now())
  const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
  for (const tag of ['one', 'many', 'client', 'client2', 'burst']) await segments.addTag(tag, { step: 100 })
  await segments.addTag('huge', { step: 10, maxId: 9_007_199_254_740_993n })
  server = await startIdsServer({ segments, startSnowflake: () => SnowflakeNode.start({ workerId: 3, clock }) })
  url = `http://127.0.0.1:${server.port}`
})
afterAll(() => server.close())

async function get(path: string): Promise<{ status: number; type: string; body: string }> {
  const response = await fetch(url + path)
  return { status: response.status, type: response.headers.get('content-type') ?? '', body: await response.text() }
}

describe('routes', () => {
  test('GET /api/segment/get/{tag} gives one id as text', async () => {
    expect(await get('/api/segment/get/one')).toMatchObject({ status: 200, body: '1' })
    expect((await get('/api/segment/get/one')).type).toContain('text/plain')
  })

  test('GET /api/snowflake/get/{key} gives one id as text, whatever the key', async () => {
    const { status, body } = await get('/api/snowflake/get/order')
    expect(status).toBe(200)
    expect(body).toMatch(/^\d{19}$/)
    expect(BigInt((await get('/api/snowflake/get/other')).body) > BigInt(body)).toBe(true)
  })

  test('?count= gives a batch as a JSON array of texts, in which no digit is lost', async () => {
    const { body, type } = await get('/api/segment/get/many?count=250')
    expect(type).toContain('application/json')
    expect(JSON.parse(body)).toEqual(Array.from({ length: 250 }, (_, index) => String(index + 1)))
    expect(JSON.parse((await get('/api/segment/get/huge?count=2')).body)).toEqual([
      '9007199254740993',
      '9007199254740994',
    ])
    const flakes = JSON.parse((await get('/api/snowflake/get/x?count=100')).body) as string[]
    expect(new Set(flakes).size).toBe(100)
    expect(flakes.every((id) => typeof id === 'string')).toBe(true)
  })

  test('decode takes a snowflake apart', async () => {
    const id = (await get('/api/snowflake/get/x')).body
    const { body } = await get(`/api/snowflake/decode/${id}`)
    expect(JSON.parse(body)).toMatchObject({ id, workerId: 3, timestampMs: clock.now() })
    expect(await get('/api/snowflake/decode/xyz')).toMatchObject({ status: 400 })
  })

  test('peers can ask for the time', async () => {
    expect(JSON.parse((await get('/api/snowflake/time')).body)).toEqual({ time: clock.now() })
  })

  test('the console sees buffers, databases and the worker', async () => {
    const buffers = JSON.parse((await get('/api/ids/buffers')).body) as { tag: string }[]
    expect(buffers.find(({ tag }) => tag === 'many')).toMatchObject({ next: '251', tableStep: 100, isLoading: false })
    const [database] = JSON.parse((await get('/api/ids/databases?refresh')).body)
    expect(database).toMatchObject({ name: 'sqlite :memory:', isUp: true })
    expect(database.rows.find(({ tag }: { tag: string }) => tag === 'huge')).toMatchObject({
      maxId: expect.stringMatching(/^90071992547\d{5}$/),
      step: 10,
    })
    expect(JSON.parse((await get('/api/ids/status')).body)).toMatchObject({
      snowflake: { state: 'serving', workerId: 3 },
      segments: { tags: 6 },
    })
  })

  test('errors have a status, a code and a sentence', async () => {
    expect(await get('/api/segment/get/nobody')).toMatchObject({
      status: 404,
      body: expect.stringContaining('FB_IDS_TAG_UNKNOWN'),
    })
    for (const count of ['0', '-1', 'x', '10001', '']) {
      expect(await get(`/api/snowflake/get/x?count=${count}`)).toMatchObject({
        status: 400,
        body: expect.stringContaining('FB_OPTION_INVALID'),
      })
      expect((await get(`/api/segment/get/many?count=${count}`)).status).toBe(400)
    }
  })

  test('a clock that went back: 503 with the documented code, health checks answer, and ids go on by themselves', async () => {
    await get('/api/snowflake/get/x')
    clock.step(-1000)
    expect(await get('/api/snowflake/get/x')).toMatchObject({
      status: 503,
      body: expect.stringContaining('FB_IDS_CLOCK_BACKWARD'),
    })
    expect((await get('/livez')).status).toBe(200)
    expect(await get('/readyz')).toMatchObject({ status: 503, body: expect.stringContaining('1000 ms behind') })
    clock.step(1001)
    expect((await get('/readyz')).status).toBe(200)
    expect((await get('/api/snowflake/get/x')).status).toBe(200)
  })
})

describe('the client library', () => {
  test('fetches ahead and answers from memory', async () => {
    const client = new IdClient({ url, tag: 'client', batch: 100 })
    const ids: string[] = []
    for (let index = 0; index < 1000; index++) ids.push(client.take() ?? (await client.next()))
    expect(ids).toEqual(Array.from({ length: 1000 }, (_, index) => String(index + 1)))
    // Past the half of a batch the next one comes by itself.
    for (let index = 0; index < 51; index++) await client.next()
    await waitFor(() => client.left > 100)
  })

  test('shares a request between callers at once', async () => {
    const client = new IdClient({ url, tag: 'client2', batch: 10 })
    const before = server.service.given
    const ids = await Promise.all(Array.from({ length: 95 }, () => client.next()))
    expect(new Set(ids).size).toBe(95)
    expect(server.service.given - before).toBeLessThanOrEqual(120)
  })

  test('gives snowflakes, and drops those that have become too old', async () => {
    const steady = new FakeClock()
    const client = new IdClient({
      url,
      batch: 10,
      maxAgeMs: 1000,
      refillAt: 0,
      runtime: { ...systemRuntime, clock: steady },
    })
    const first = await client.next()
    expect(server.service.snowflake!.decode(first).workerId).toBe(3)
    expect(client.left).toBe(9)
    steady.step(1001)
    expect(client.take()).toBe(undefined)
    clock.step(5)
    expect(server.service.snowflake!.decode(await client.next()).timestampMs).toBe(clock.now())
  })

  test('tries the next address, and says so where none answers', async () => {
    const dead = `http://127.0.0.1:${await freePort()}`
    const client = new IdClient({ url: [dead, url], tag: 'burst', batch: 10 })
    expect(await client.next()).toBe('1')
    const alone = new IdClient({ url: dead, tag: 'burst' })
    await expect(alone.next()).rejects.toMatchObject({ code: 'FB_IDS_SERVICE_DOWN' })
    const unknown = new IdClient({ url, tag: 'nobody' })
    await expect(unknown.next()).rejects.toThrow('unknown tag "nobody"')
    expect(() => new IdClient({ url, batch: 0 })).toThrow(/option batch/)
  })
})

describe('access', () => {
  test('with a token only health checks and the clock are open', async () => {
    const guarded = await startIdsServer({
      token: 'secret',
      startSnowflake: () => SnowflakeNode.start({ workerId: 4 }),
      respPort: 0,
    })
    const at = `http://127.0.0.1:${guarded.port}`
    for (const path of ['/livez', '/readyz', '/api/snowflake/time']) expect((await fetch(at + path)).status).toBe(200)
    expect((await fetch(`${at}/api/snowflake/get/x`)).status).toBe(401)
    const wrong = await fetch(`${at}/api/snowflake/get/x`, { headers: { authorization: 'Bearer guess!' } })
    expect(await wrong.json()).toMatchObject({ code: 'FB_TOKEN_REFUSED' })
    const client = new IdClient({ url: at, token: 'secret' })
    expect(await client.next()).toMatch(/^\d+$/)
    await guarded.close()
  })

  test('what is wrong is told in words to those with the token only', async () => {
    const time = new FakeClock(Date.now())
    const guarded = await startIdsServer({
      token: 'secret',
      startSnowflake: () => SnowflakeNode.start({ workerId: 5, clock: time }),
    })
    const readyz = async (headers: Record<string, string> = {}) =>
      (await fetch(`http://127.0.0.1:${guarded.port}/readyz`, { headers })).json()
    guarded.service.nextSnowflake()
    time.step(-1000)
    expect(() => guarded.service.nextSnowflake()).toThrow()
    expect(await readyz()).toEqual({ isReady: false, troubles: ['snowflake'] })
    expect(await readyz({ authorization: 'Bearer secret' })).toMatchObject({
      troubles: [expect.stringContaining('1000 ms behind')],
    })
    await guarded.close()
  })

  test('beyond loopback it does not start without a token', async () => {
    await expect(startIdsServer({ host: '0.0.0.0' })).rejects.toMatchObject({ code: 'FB_OPTION_INVALID' })
  })

  test('a node that may not start closes the service again', async () => {
    const port = await freePort()
    const failing = startIdsServer({ port, startSnowflake: () => Promise.reject(new Error('refused')) })
    await expect(failing).rejects.toThrow('refused')
    await expect(fetch(`http://127.0.0.1:${port}/livez`)).rejects.toThrow()
  })
})
