import { createServer } from 'node:http'
import { connect } from 'node:net'
import { systemRuntime } from '@firebreak/core'
import {
  decodeSnowflake,
  IdClient,
  IdService,
  mariadbSegmentStore,
  RedisRegistry,
  RespIdServer,
  SegmentIds,
  type SegmentStore,
  Snowflake,
  SnowflakeNode,
  sqliteSegmentStore,
} from '@firebreak/ids'
import {
  fakeRuntime,
  type MariadbServer,
  type RedisServer,
  startMariadb,
  startRedis,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createPool, type Pool } from 'mysql2/promise'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { type IdsServer, startIdsServer } from '../../packages/hub/src/ids/ids-server.ts'

// What a stranger tries on ids: odd numbers and clocks, rows and records written by hand, two of everything, a service
// that lies, requests that nobody meant.

vi.setConfig({ testTimeout: 60_000 })

let redisServer: RedisServer
let redis: Redis
let mariadb: MariadbServer
let pool: Pool
beforeAll(async () => {
  ;[redisServer, mariadb] = await Promise.all([startRedis(), startMariadb()])
  redis = new Redis(redisServer.port)
  pool = createPool({ uri: mariadb.url })
})
afterAll(async () => {
  redis.disconnect()
  await pool.end()
  await Promise.all([redisServer.stop(), mariadb.stop()])
})

const wrongCounts = [-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 1e9, '5', null] as unknown as number[]
const invalid = expect.objectContaining({ code: 'FB_OPTION_INVALID' })

describe('numbers and clocks', () => {
  test.each([-1, 1024, 1.5, Number.NaN, '7', null])('worker %s is nobody', (workerId) => {
    expect(() => new Snowflake({ workerId: workerId as number })).toThrow(invalid)
  })

  test.each([-1, 0.5, Number.NaN, Number.POSITIVE_INFINITY, 8.64e15, '0'])('time cannot start at %s', (epochMs) => {
    expect(() => new Snowflake({ workerId: 1, epochMs: epochMs as number })).toThrow(invalid)
  })

  test('too many ids at once are refused', async () => {
    const snowflake = new Snowflake({ workerId: 1 })
    const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
    await segments.addTag('a', { step: 10 })
    for (const count of wrongCounts) {
      expect(() => snowflake.nextMany(count), String(count)).toThrow(invalid)
      await expect(segments.nextMany('a', count), String(count)).rejects.toEqual(invalid)
    }
    expect([snowflake.nextMany(0), await segments.nextMany('a', 0)]).toEqual([[], []])
    expect(await segments.next('a')).toBe('1')
    await segments.close()
  })

  test('a clock before the epoch, or without a valid time, gives no id', () => {
    const clock = { at: 1_700_000_000_000, now: () => clock.at }
    const snowflake = new Snowflake({ workerId: 1, epochMs: 1_700_000_000_000, clock })
    clock.at = 1_699_999_000_000
    expect(() => snowflake.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CLOCK_BACKWARD' }))
    clock.at = Number.NaN
    expect(() => snowflake.next()).toThrow(expect.objectContaining({ code: expect.stringMatching(/^FB_IDS_CLOCK/) }))
    clock.at = 1_700_000_000_001
    expect(decodeSnowflake(snowflake.next(), 1_700_000_000_000).timestampMs).toBe(1_700_000_000_001)
    clock.at = 1_700_000_000_000 + 2 ** 41
    expect(() => snowflake.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CLOCK_REFUSED' }))
  })

  test('with a clock that goes both ways and stands still, ids ascend or are refused', () => {
    let seed = 7
    const random = () => (seed = (seed * 48_271) % 2_147_483_647) / 2_147_483_647
    // Reading it advances it, so that waiting ends.
    const clock = { at: 1_750_000_000_000, now: () => (clock.at += 0.5) }
    const snowflake = new Snowflake({ workerId: 5, clock })
    let last = -1n
    let refused = 0
    for (let call = 0; call < 2000; call++) {
      if (call % 7 === 0) clock.at += Math.round((random() - 0.45) * 20)
      try {
        const id = snowflake.nextBigInt()
        expect(id > last).toBe(true)
        last = id
      } catch (error) {
        // On a busy machine its few steps may look like a clock that stands still.
        expect(error).toMatchObject({ code: expect.stringMatching(/^FB_IDS_CLOCK_(BACKWARD|STALLED)$/) })
        refused++
      }
    }
    expect(refused).toBeGreaterThan(0)
  })

  test.each(['', ' ', 'x', '-1', '1.5', '0x10', '9223372036854775808', '1'.repeat(30), -1n, 1n << 63n, null, 5, {}])(
    '%s is not a snowflake',
    (id) => {
      expect(() => decodeSnowflake(id as string)).toThrow(expect.objectContaining({ code: 'FB_IDS_ID_INVALID' }))
    },
  )
})

describe('segments', () => {
  test.each(['refreshEveryMs', 'waitTimeoutMs', 'retryMs', 'maxWaiters'])('%s is a number above 0', async (option) => {
    for (const value of [0, -1, Number.NaN, Number.POSITIVE_INFINITY, '5'])
      await expect(
        SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')], [option]: value }),
        String(value),
      ).rejects.toEqual(invalid)
  })

  test('tags, steps and first ids that no column can hold are refused', async () => {
    const segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
    for (const tag of ['', ' ', 'a b', 'é', 'x'.repeat(129), 'a\0', "'; DROP TABLE leaf_alloc;--"])
      await expect(segments.addTag(tag, { step: 1 }), tag).rejects.toEqual(invalid)
    for (const step of [0, -1, 1.5, Number.NaN, 2 ** 31])
      await expect(segments.addTag('t', { step }), String(step)).rejects.toEqual(invalid)
    for (const maxId of [-1n, 1n << 63n, 5 as unknown as bigint])
      await expect(segments.addTag('t', { step: 1, maxId }), String(maxId)).rejects.toEqual(invalid)
    for (const tag of ['__proto__', 'toString', 'constructor']) {
      await expect(segments.next(tag)).rejects.toMatchObject({ code: 'FB_IDS_TAG_UNKNOWN' })
      await segments.addTag(tag, { step: 5 })
      expect(await segments.next(tag)).toBe('1')
    }
    await segments.close()
  })

  test.each([
    ['step 0', 0, '100'],
    ['a step below 0', -5, '100'],
    ['a max_id below 0', 10, '-50'],
  ])('a row written by hand with %s gives no id, and is left unchanged', async (_, step, maxId) => {
    const store = mariadbSegmentStore(createPool({ uri: mariadb.url }))
    await store.prepare()
    await pool.query('REPLACE INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, ?, ?)', ['by-hand', maxId, step])
    const alarms: string[] = []
    const segments = await SegmentIds.start({
      stores: [store],
      waitTimeoutMs: 60_000,
      onAlarm: ({ code }) => alarms.push(code),
    })
    await expect(segments.next('by-hand')).rejects.toMatchObject({ code: 'FB_IDS_TAG_INVALID' })
    const [rows] = await pool.query("SELECT max_id FROM leaf_alloc WHERE biz_tag = 'by-hand'")
    expect(rows).toMatchObject([{ max_id: Number(maxId) }])
    expect(alarms).toContain('FB_IDS_TAG_INVALID')
    // Set right, it serves without a restart.
    await pool.query("UPDATE leaf_alloc SET max_id = 100, step = 10 WHERE biz_tag = 'by-hand'")
    await waitFor(
      () =>
        segments.next('by-hand').then(
          (id) => id === '100',
          () => false,
        ),
      { what: 'the row to be right' },
    )
    await segments.close()
  })

  test('a custom store that gives no segment is reported, and not asked in a loop', async () => {
    let asked = 0
    const lying: SegmentStore = {
      ...sqliteSegmentStore(':memory:'),
      name: 'lying',
      prepare: async () => {},
      rows: async () => [{ tag: 'a', maxId: 1n, step: 1, description: '', updatedAt: '' }],
      add: async () => {},
      close: async () => {},
      allocate: async () => {
        asked++
        return { maxId: 5n, size: -5, tableStep: -5 }
      },
    }
    const segments = await SegmentIds.start({ stores: [lying], retryMs: 60_000, onAlarm: () => {} })
    await expect(segments.next('a')).rejects.toMatchObject({ code: 'FB_IDS_TAG_INVALID' })
    await expect(segments.next('a')).rejects.toMatchObject({ code: 'FB_IDS_TAG_INVALID' })
    expect(asked).toBe(1)
    await segments.close()
  })

  test('two of them with a step of 1, a table restored in the middle: no id twice', async () => {
    const runtime = fakeRuntime()
    const open = () =>
      SegmentIds.start({ stores: [mariadbSegmentStore(createPool({ uri: mariadb.url }))], onAlarm, runtime })
    const alarms: string[] = []
    const onAlarm = ({ code }: { code: string }) => alarms.push(code)
    const both = [await open(), await open()]
    await both[0]!.addTag('pair', { step: 1 })
    await both[1]!.refresh()
    const given: string[] = []
    const take = async (segments: SegmentIds, count = 40) =>
      void given.push(...(await segments.nextMany('pair', count)))
    await Promise.all(both.map((segments) => take(segments)))
    expect(new Set(given).size).toBe(80)
    // A segment in flight while the table goes back cannot be detected.
    await Promise.all(both.map((segments) => waitFor(() => segments.buffers().every(({ isLoading }) => !isLoading))))
    // A backup from the beginning: whoever has given ids knows better, says so, and waits for the other to say it too.
    await pool.query("UPDATE leaf_alloc SET max_id = 1 WHERE biz_tag = 'pair'")
    await Promise.all(both.map((segments) => segments.refresh()))
    expect(alarms).toContain('FB_IDS_SEGMENT_BACKWARD')
    runtime.clock.advance(90_001)
    await Promise.all(both.map((segments) => segments.refresh()))
    await Promise.all(both.map((segments) => take(segments, 1000)))
    for (const segments of both) expect(segments.buffers().find(({ tag }) => tag === 'pair')!.loads).toBeGreaterThan(1)
    expect(new Set(given).size).toBe(2080)
    await pool.query("DELETE FROM leaf_alloc WHERE biz_tag = 'pair'")
    await both[0]!.refresh()
    await expect(both[0]!.next('pair')).rejects.toMatchObject({ code: 'FB_IDS_TAG_UNKNOWN' })
    await Promise.all(both.map((segments) => segments.close()))
    await expect(both[1]!.next('pair')).rejects.toMatchObject({ code: 'FB_IDS_CLOSED' })
  })
})

describe('a registry', () => {
  let port = 100
  const start = (root: string, address = { ip: '127.0.0.1', port: ++port }, options = {}) =>
    SnowflakeNode.start({
      registry: new RedisRegistry({ redis, root, address }),
      address,
      reportEveryMs: 100,
      settleMs: 200,
      registryAheadMs: 2000,
      markAheadMs: 100,
      claimWaitMs: 0,
      askTime: async () => systemRuntime.wallClock.now(),
      onAlarm: () => {},
      ...options,
    })

  test('invalid records belong to nobody, and their numbers are not used', async () => {
    const records = ['', '{', 'null', '7', '[]', '"x"', '{"ip":7}', '{"ip":"10.0.0.1","port":"x","timestamp":null}']
    for (const [index, record] of records.entries()) await redis.hset('{odd}:leaf_forever', String(index), record)
    await redis.hset('{odd}:leaf_forever', { '5000': '{}', '-3': '{}', x: '{}', '1e2': '{}', toString: '{}' })
    const node = await start('odd')
    expect(node.workerId).toBe(records.length)
    expect(node.next()).toMatch(/^\d+$/)
    await node.close()
  })

  test('two nodes with one address: the second is refused while the first is live, and gets its number afterwards', async () => {
    const address = { ip: '127.0.0.1', port: 7 }
    const first = await start('twice', address)
    await expect(start('twice', address)).rejects.toMatchObject({ code: 'FB_IDS_ADDRESS_TAKEN' })
    expect(first.next()).toMatch(/^\d+$/)
    const last = first.nextBigInt()
    await Promise.all([first.close(), first.close()])
    expect(() => first.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CLOSED' }))
    const second = await start('twice', address)
    expect(second.workerId).toBe(first.workerId)
    expect(second.nextBigInt() > last).toBe(true)
    await second.close()
  })

  test('emptied again and again while nodes run and start: no id twice', async () => {
    const nodes = await Promise.all([start('emptied'), start('emptied')])
    const given: bigint[] = []
    const give = () => {
      for (const node of nodes)
        try {
          given.push(node.nextBigInt())
        } catch (error) {
          expect(error).toMatchObject({ code: expect.stringMatching(/^FB_IDS_/) })
        }
    }
    for (let round = 0; round < 3; round++) {
      await redis.flushall()
      const begins = start('emptied')
      const giving = setInterval(give, 1)
      nodes.push(await begins)
      await waitFor(() => nodes.every((node) => node.status().state === 'serving'), { what: 'all to serve again' })
      clearInterval(giving)
      for (let time = 0; time < 50; time++) give()
      expect(new Set(nodes.map(({ workerId }) => workerId)).size).toBe(nodes.length)
    }
    expect(given.length).toBeGreaterThan(100)
    expect(new Set(given).size).toBe(given.length)
    await Promise.all(nodes.map((node) => node.close()))
  })

  test('a start without a registry that answers, and without a file, is refused', async () => {
    const away = new Redis(1, { lazyConnect: true, retryStrategy: () => null, maxRetriesPerRequest: 0 })
    away.on('error', () => {})
    const address = { ip: '127.0.0.1', port: 9 }
    const registry = new RedisRegistry({ redis: away, address, requestTimeoutMs: 500 })
    await expect(SnowflakeNode.start({ registry, address, onAlarm: () => {} })).rejects.toMatchObject({
      code: 'FB_IDS_CACHE_MISSING',
    })
    for (const wrong of [
      { ip: '', port: 1 },
      { ip: 'a b', port: 1 },
      { ip: '::1', port: 0 },
      { ip: 'h', port: 65_536 },
    ])
      expect(() => new RedisRegistry({ redis, address: wrong })).toThrow(invalid)
  })
})

describe('over the network', () => {
  let server: IdsServer
  let resp: RespIdServer
  let segments: SegmentIds
  beforeAll(async () => {
    segments = await SegmentIds.start({ stores: [sqliteSegmentStore(':memory:')] })
    await segments.addTag('order', { step: 1000 })
    server = await startIdsServer({ segments, startSnowflake: () => SnowflakeNode.start({ workerId: 3 }) })
    resp = await RespIdServer.start({
      service: new IdService({ segments, snowflake: await SnowflakeNode.start({ workerId: 4 }) }),
    })
  })
  afterAll(async () => {
    await resp.close()
    await server.close()
  })

  test.each(['0', '-1', '10001', '999999999999', '', 'x', '1.5', '1e3', '5&count=6', '%00', ' 5', '٣'])(
    'a count of %j gets a 400, and uses up no id',
    async (count) => {
      for (const path of ['segment/get/order', 'snowflake/get/x']) {
        const response = await fetch(`http://127.0.0.1:${server.port}/api/${path}?count=${count}`)
        expect(response.status, path).toBe(400)
        expect(await response.json()).toMatchObject({ code: 'FB_OPTION_INVALID' })
      }
      expect(segments.buffers().find(({ tag }) => tag === 'order')).toMatchObject({ left: 0 })
    },
  )

  test('no request, however malformed, gets a 5xx', async () => {
    const paths = [
      ...[
        'segment/get/',
        'segment/get/%ff',
        'segment/get/%',
        'segment/get/__proto__',
        `segment/get/${'x'.repeat(5000)}`,
      ],
      ...['segment/get/a%2fb', 'segment/get/a%00', 'snowflake/decode/', 'snowflake/decode/-1', 'snowflake/decode/NaN'],
      ...['snowflake/decode/99999999999999999999', 'snowflake/get', 'ids/nonsense', '../../etc/passwd'],
    ]
    for (const path of paths) {
      for (const method of ['GET', 'POST', 'HEAD', 'DELETE']) {
        const { status } = await fetch(`http://127.0.0.1:${server.port}/api/${path}`, { method })
        expect(status, `${method} ${path.slice(0, 40)}`).toBeGreaterThanOrEqual(400)
        expect(status, `${method} ${path.slice(0, 40)}`).toBeLessThan(500)
      }
    }
  })

  test.each([
    ['INCR', /^-ERR wrong number/],
    ['INCR a b', /^-ERR wrong number/],
    ['INCR nobody', /^-ERR FB_IDS_TAG_UNKNOWN/],
    ['INCR __proto__', /^-ERR FB_IDS_TAG_UNKNOWN/],
    ['GET order', /^-ERR unknown command/],
    ['SET order 1', /^-ERR unknown command/],
    ['LPOP order 0', /^-ERR .*whole number/],
    ['LPOP order -1', /^-ERR .*whole number/],
    ['LPOP order 10001', /^-ERR .*whole number/],
    ['LPOP snowflake 1e3', /^-ERR .*whole number/],
    ['LPOP snowflake x', /^-ERR .*whole number/],
    ['SELECT 1', /^-ERR DB index/],
    ['HELLO 9', /^-NOPROTO/],
    ['toString', /^-ERR unknown command/],
    ['*-1\r\n$5', /^(-ERR|$)/],
    ['*1\r\n$-5\r\nx', /^(-ERR|$)/],
    [`*1\r\n$999999999`, /^(-ERR|$)/],
    ['\0\u0001\u0002', /^(-ERR|$)/],
    ['x'.repeat(100_000), /^(-ERR|$)/],
  ])('over RESP %j is an error, and the next client is served', async (line, answer) => {
    const ask = (text: string) =>
      new Promise<string>((resolve) => {
        let reply = ''
        const socket = connect(resp.port, '127.0.0.1', () => socket.end(`${text}\r\n`))
        socket.on('data', (bytes) => (reply += bytes))
        socket.on('error', () => {})
        socket.on('close', () => resolve(reply))
      })
    expect(await ask(line)).toMatch(answer)
    expect(await ask('LPOP snowflake')).toMatch(/^\$19\r\n\d{19}\r\n/)
  })

  test.each([
    { url: [] },
    { url: '' },
    { url: 'nowhere' },
    { maxAgeMs: 0 },
    { maxAgeMs: Number.NaN },
    { requestTimeoutMs: 0 },
    { requestTimeoutMs: Number.NaN },
    { refillAt: 2 },
  ])('a client with %j is refused by the constructor', (options) => {
    expect(() => new IdClient({ url: 'http://127.0.0.1:1', ...options })).toThrow(invalid)
  })

  test('a faulty service is not used: no id that lost its digits, no loop, and the next service is asked', async () => {
    const bodies = [
      '[2121914418680830963]',
      '["1",2]',
      '[null]',
      '["x"]',
      '["-1"]',
      '[]',
      '{}',
      'null',
      '"1"',
      '<html>',
    ]
    let asked = 0
    let body = ''
    const lying = createServer((_, response) => {
      asked++
      response.end(body)
    })
    await new Promise<void>((resolve) => lying.listen(0, '127.0.0.1', resolve))
    const url = `http://127.0.0.1:${(lying.address() as { port: number }).port}`
    for (body of bodies) {
      const client = new IdClient({ url, batch: 2 })
      await expect(client.next(), body).rejects.toMatchObject({ code: 'FB_IDS_SERVICE_DOWN' })
    }
    expect(asked).toBe(bodies.length)
    const client = new IdClient({
      url: [url, `http://127.0.0.1:${server.port}`],
      batch: 10_000,
      requestTimeoutMs: 30_000,
    })
    const ids = await Promise.all(Array.from({ length: 20_000 }, () => client.next()))
    expect(new Set(ids).size).toBe(20_000)
    lying.close()
    lying.closeAllConnections()
  })
})
