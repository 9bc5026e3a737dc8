import { join } from 'node:path'
import { Snowflake } from '@firebreak/ids'
import { OrderWorker, Sale, saleKeys, sqliteOrderStore } from '@firebreak/sale'
import {
  letTimePass,
  type RedisServer,
  scale,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { startShop } from '../../examples/flash-sale/src/shop-fleet.ts'
import { Visitors } from '../../examples/flash-sale/src/visitors.ts'

let server: RedisServer
let redis: Redis
let sale: Sale
const stock = 100

beforeEach(async () => {
  server = await startRedis({ args: ['--appendonly', 'yes', '--appendfsync', 'everysec'] })
  redis = new Redis(server.port, { maxRetriesPerRequest: null })
  redis.on('error', () => {})
  sale = new Sale(redis, { ids: new Snowflake({ workerId: 1001 }) })
})
afterEach(async () => {
  await sale.close()
  redis.disconnect()
  await server.stop()
})

async function open(id: string): Promise<void> {
  const now = Math.floor(Date.now() / 1000)
  await sale.open({ id, begin: now - 1, end: now + 3600, stock })
}

async function pending(id: string): Promise<number> {
  const [count] = (await redis.call('XPENDING', saleKeys(id).orders, 'orders')) as [number]
  return count
}

test('many users from four processes get exactly the stock: orders, users, rows and ids', async () => {
  await open('v')
  const store = await sqliteOrderStore(join(temporaryFolder('sale'), 'orders.sqlite'))
  await store.migrate()
  const worker = new OrderWorker(redis, { store, name: 'w' })
  await worker.start()
  let lowest = stock
  const looking = setInterval(async () => {
    lowest = Math.min(lowest, Number(await redis.hget(saleKeys('v').voucher, 'stock')))
  }, 5)
  const count = scale(2000, 10_000)
  const users = Array.from({ length: count }, (_, index) => `user-${index}`)
  const children = [0, 1, 2, 3].map((number) => {
    const options = {
      port: server.port,
      voucher: 'v',
      number,
      users: users.filter((_, index) => index % 4 === number),
      inFlight: 50,
    }
    return startSource(new URL('./buyer-process.ts', import.meta.url), [JSON.stringify(options)])
  })
  const answers = await Promise.all(
    children.map(
      async (child) =>
        JSON.parse((await child.printed(/\{"codes".*\}/, 60_000))[0]) as {
          codes: Record<string, number>
          orders: string[]
        },
    ),
  )
  clearInterval(looking)
  const sold = answers.flatMap(({ orders }) => orders)
  expect(sold).toHaveLength(stock)
  expect(new Set(sold).size).toBe(stock)
  expect(answers.reduce((sum, { codes }) => sum + Object.values(codes).reduce((a, b) => a + b, 0), 0)).toBe(count)
  expect(await sale.stock('v')).toEqual({ stock: 0, total: stock, buyers: stock })
  expect(lowest).toBeGreaterThanOrEqual(0)
  await waitFor(async () => (await store.count('v')) === stock)
  for (const orderId of sold) expect((await store.get(orderId))?.state).toBe('placed')
  await waitFor(async () => (await pending('v')) === 0)
  await worker.close()
  await store.close()
})

test('servers and their workers killed at random: stock and buyers add up, one row per buyer, nothing pending', async () => {
  await open('k')
  const storeFile = join(temporaryFolder('sale'), 'orders.sqlite')
  const start = (number: number) => startShop({ redisUrl: server.url, number, storeFile, triesPerUser: 1000 })
  let shops = await Promise.all([0, 1].map(start))
  let visitors = new Visitors(
    shops.map(({ port }) => port),
    100,
  )
  let isBuying = true
  let user = 0
  const buying = (async () => {
    while (isBuying) {
      while (!visitors.isBusy) void visitors.buy('k', `user-${user++ % 400}`)
      await letTimePass(5)
    }
  })()
  for (let kill = 0; kill < scale(3, 10); kill++) {
    const before = user
    await waitFor(() => user > before + 30)
    shops[kill % 2]!.child.kill('SIGKILL')
    shops = await Promise.all(shops.map((shop, index) => (index === kill % 2 ? start(10 + kill) : shop)))
    visitors = new Visitors(
      shops.map(({ port }) => port),
      100,
    )
  }
  await waitFor(async () => (await sale.stock('k'))?.stock === 0, { timeoutMs: 30_000 })
  isBuying = false
  await buying
  const after = await sale.stock('k')
  expect(after!.stock + after!.buyers).toBe(stock)
  const store = await sqliteOrderStore(storeFile)
  await waitFor(async () => (await store.count('k')) === stock, { timeoutMs: 30_000 })
  await waitFor(async () => (await pending('k')) === 0, { timeoutMs: 30_000 })
  expect(await redis.xlen(saleKeys('k').dead)).toBe(0)
  await store.close()
  for (const { child } of shops) child.kill('SIGKILL')
})

test('Redis killed and restarted from its AOF in the middle: never more rows than stock, no user twice', async () => {
  await open('r')
  const store = await sqliteOrderStore(join(temporaryFolder('sale'), 'orders.sqlite'))
  await store.migrate()
  const worker = new OrderWorker(redis, { store, name: 'w', scanMs: 100 })
  await worker.start()
  const buy = (from: number, to: number) =>
    Promise.allSettled(
      Array.from({ length: to - from }, (_, index) => sale.purchase('r', `user-${(from + index) % 150}`)),
    )
  await buy(0, 60)
  await waitFor(async () => (await store.count('r')) > 0)
  server.child.signal('SIGKILL')
  await server.child.exited
  server = await server.restart()
  await waitFor(async () => (await redis.ping().catch(() => '')) === 'PONG')
  await buy(30, 400)
  await waitFor(async () => (await sale.stock('r'))?.stock === 0, { timeoutMs: 30_000 })
  await waitFor(async () => (await pending('r')) === 0, { timeoutMs: 30_000 })
  const rows = await store.count('r')
  expect(rows).toBeLessThanOrEqual(stock)
  expect(rows).toBeGreaterThan(0)
  await worker.close()
  await store.close()
})
