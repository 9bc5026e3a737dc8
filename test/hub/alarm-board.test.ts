import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { protect, unprotect } from '@firebreak/client'
import type { AlarmView } from '@firebreak/core'
import { AlarmReporter } from '@firebreak/core/node'
import { type Hub, openHubServices, startHub } from '@firebreak/hub'
import { RedisLimiter, tokenBucket } from '@firebreak/limits'
import { LockReporter, Locks } from '@firebreak/locks'
import { DeadLetters, Sale, SaleBoard, saleKeys } from '@firebreak/sale'
import { type RedisServer, startRedis, startSource, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** Whatever breaks in whichever room and process is on one board: a hub with its services, and what is real around it. */
const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
const ends: (() => unknown)[] = []
let server: RedisServer
let client: Redis
let hub: Hub

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
  const board = new SaleBoard(client)
  const letters = new DeadLetters(client)
  const services = await openHubServices({
    sale: {
      vouchers: () => board.vouchers(),
      orders: (id, limit) => board.orders(id, limit),
      letters: (id, limit) => letters.list(id, { limit }),
      settle: (id, ids, action) => letters[action](id, ids),
    },
  })
  hub = await startHub({
    plugins: services.plugins,
    logLevel: 'fatal',
    tokens: {
      apps: [{ name: 'shop', token: 'a-token-of-the-shop', services: ['shop', 'ids'] }],
      people: [{ name: 'ann', role: 'operator', token: 'a-token-of-ann-herself' }],
    },
  })
  ends.push(
    () => hub.close(),
    () => services.close(),
    () => client.disconnect(),
    () => server.stop(),
  )
})
afterAll(async () => {
  for (const end of ends) await end()
})

const person = { authorization: 'Bearer a-token-of-ann-herself' }
const alarms = async () =>
  ((await (await fetch(`${hub.url}/v1/alarms`, { headers: person })).json()) as { alarms: AlarmView[] }).alarms
const alarm = (id: string) =>
  waitFor(async () => (await alarms()).find((found) => found.id === id), { timeoutMs: 30_000, what: `the alarm ${id}` })
const noAlarm = (id: string) =>
  waitFor(async () => (await alarms()).every((found) => found.id !== id), {
    timeoutMs: 30_000,
    what: `the end of the alarm ${id}`,
  })

test('locks: one that was lost while it was held', async () => {
  const locks = new Locks(client)
  const reporter = new LockReporter(locks, {
    hubUrl: hub.url,
    serviceId: 'shop',
    hostId: 'host-1',
    token: 'a-token-of-ann-herself',
    everyMs: 50,
  })
  const hold = await locks.getLock('order').lock({ leaseMs: 300 })
  // Somebody deleted it.
  await client.flushall()
  await waitFor(() => hold.signal.aborted)
  expect((await alarm('locks:shop/host-1/lost')).cause).toBe(
    'locks of shop on host-1: a lock was lost while held (lease expired or taken)',
  )
  reporter.stop()
  await locks.close()
})

test('sale: orders that no worker could store, until somebody settles them', async () => {
  const sale = new Sale(client, { ids: { next: () => 'order-1' } })
  const now = Math.floor(Date.now() / 1000)
  await sale.open({ id: 'tv', begin: now - 10, end: now + 600, stock: 5 })
  await client.xadd(saleKeys('tv').dead, '*', 'entry', '1-1', 'reason', 'no room', 'kind', 'placed', 'order', 'order-9')
  expect((await alarm('sale:tv/dead-letters')).cause).toBe('sale: 1 order of voucher tv could not be stored')
  await client.del(saleKeys('tv').dead)
  await noAlarm('sale:tv/dead-letters')
  await sale.close()
})

test('limits: a limiter whose Redis is away, until it is back', async () => {
  const own = await startRedis()
  const redis = new Redis(own.port, { retryStrategy: () => 50, maxRetriesPerRequest: null })
  redis.on('error', () => {})
  const reporter = new AlarmReporter({
    hubUrl: hub.url,
    serviceId: 'shop',
    hostId: 'host-1',
    token: 'a-token-of-the-shop',
  })
  const limiter = new RedisLimiter(tokenBucket({ capacity: 10, refill: 10, perMs: 1000 }), redis, {
    onAway: (isAway) => reporter.set('limits', 'redis-away', isAway ? 'requests are admitted uncounted' : undefined),
  })
  await limiter.take('a')
  await own.stop()
  await waitFor(async () => {
    await limiter.take('a')
    return limiter.isUnavailable
  })
  expect((await alarm('limits:shop/host-1/redis-away')).cause).toContain('requests are admitted uncounted')
  const back = await own.restart()
  await noAlarm('limits:shop/host-1/redis-away')
  reporter.stop()
  redis.disconnect()
  await back.stop()
})

test('ids: `firebreak ids` in another process, whose database cannot be opened', async () => {
  const away = `mysql://nobody@127.0.0.1:1/ids`
  const child = startSource(
    main,
    ['ids', '--port', '0', '--resp-port', '0', '--database', away, '--tag', 'order:10', '--hub', hub.url],
    { env: { FIREBREAK_TOKEN: 'a-token-of-the-shop' } },
  )
  const found = await waitFor(
    async () => (await alarms()).find(({ id }) => /^ids:ids\/.*FB_IDS_DATABASE_DOWN$/.test(id)),
    {
      timeoutMs: 30_000,
    },
  )
  expect(found.severity).toBe('warning')
  await child.stop()
})

test('shield: what does not work in a protected application, or a proxy', async () => {
  const file = join(temporaryFolder('table'), 'file')
  writeFileSync(file, '')
  const redis = new Redis(server.port)
  protect(redis, {
    hubs: [hub.url],
    token: 'a-token-of-the-shop',
    serviceId: 'shop',
    hostId: 'host-2',
    redisClusterId: 'main',
    // A file cannot hold another.
    tableFile: join(file, 'table.json'),
    onWarning: () => {},
  })
  await redis.get('a')
  expect((await alarm('shield:shop/host-2/table-file')).cause).toContain('cannot save the last good table')
  await unprotect(redis)
  redis.disconnect()
})

test('a process speaks for the services of its token, for rooms that there are, and for ten alarms at most', async () => {
  const post = async (body: object, token = 'a-token-of-the-shop') => {
    const headers = { 'content-type': 'application/json', authorization: `Bearer ${token}` }
    const response = await fetch(`${hub.url}/v1/alarms`, { method: 'POST', headers, body: JSON.stringify(body) })
    return [response.status, (await response.text()).match(/"code":"(\w+)"/)?.[1]]
  }
  const one = { room: 'app', code: 'queue', message: 'the queue is full' }
  const of = (serviceId: string, list: object[]) => ({ serviceId, hostId: 'h', alarms: list })
  expect(await post(of('bank', [one]))).toEqual([403, 'FB_SCOPE_REFUSED'])
  expect(await post(of('shop', [one]), 'nobody')).toEqual([401, 'FB_TOKEN_REFUSED'])
  expect(await post(of('shop', [{ ...one, room: 'board' }]))).toEqual([400, 'FB_INPUT_INVALID'])
  expect(await post(of('shop', Array(11).fill(one)))).toEqual([400, 'FB_INPUT_INVALID'])
  expect(await post(of('shop', [one]))).toEqual([204, undefined])
  await alarm('app:shop/h/queue')
  expect((await fetch(`${hub.url}/readyz`)).status).toBe(200)
  expect(await post(of('shop', []))).toEqual([204, undefined])
  await noAlarm('app:shop/h/queue')
})
