import {
  mariadbOrderStore,
  type OrderStore,
  OrderWorker,
  type PurchaseResult,
  postgresOrderStore,
  Sale,
  saleKeys,
} from '@firebreak/sale'
import {
  letTimePass,
  type MariadbServer,
  type PostgresServer,
  type RedisServer,
  scale,
  startMariadb,
  startPostgres,
  startRedis,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createPool } from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'

let redis: RedisServer
let client: Redis
beforeAll(async () => {
  redis = await startRedis()
  client = new Redis(redis.port)
})
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

const databases: Record<string, { start(): Promise<MariadbServer | PostgresServer>; open(url: string): OrderStore }> = {
  MariaDB: {
    start: () => startMariadb(),
    open: (url) => mariadbOrderStore(createPool({ uri: url, connectionLimit: 4 })),
  },
  PostgreSQL: {
    start: () => startPostgres(),
    // Nobody listens to the errors of the pool and its clients: a worker's process must still survive.
    open: (url) => postgresOrderStore(new pg.Pool({ connectionString: url, max: 4 })),
  },
}

/** The same store, counting what failed. */
function counted(inner: OrderStore, failed: () => void): OrderStore {
  const watched = async <T>(work: Promise<T>): Promise<T> => {
    try {
      return await work
    } catch (error) {
      failed()
      throw error
    }
  }
  return {
    migrate: () => inner.migrate(),
    get: (orderId) => inner.get(orderId),
    count: (voucherId) => watched(inner.count(voucherId)),
    setTotal: (voucherId, total) => watched(inner.setTotal(voucherId, total)),
    store: (events) => watched(inner.store(events)),
    close: () => inner.close(),
  }
}

const maxDeliveries = 5
// A killed server holds its port and its locks for a moment.
const timeoutMs = scale(90_000, 240_000)

test.each(Object.keys(databases))(
  'a %s that is killed under its workers for far more than five tries loses no order',
  async (name) => {
    const { start, open } = databases[name]!
    let server = await start()
    const stores = [open(server.url), open(server.url)]
    await stores[0]!.migrate()
    const failures = [0, 0]
    const told: string[][] = [[], []]
    const workers = stores.map(
      (store, index) =>
        new OrderWorker(client, {
          store: counted(store, () => failures[index]!++),
          name: `${name}-${index}`,
          scanMs: 50,
          claimAfterMs: 100,
          maxRetryMs: 50,
          maxDeliveries,
          onError: (error) => told[index]!.push((error as { code?: string }).code ?? error.message),
        }),
    )
    let next = 0
    const sale = new Sale(client, { ids: { next: () => `${name}-${++next}` }, payWithinMs: 0 })
    const now = Math.floor(Date.now() / 1000)
    await sale.open({ id: name, begin: now - 10, end: now + 10_000, stock: 500 })
    const buy = async (from: number, to: number) => {
      const users = Array.from({ length: to - from }, (_, index) => `user-${from + index}`)
      return (await Promise.all(users.map((user) => sale.purchase(name, user)))).map(orderOf)
    }
    try {
      await Promise.all(workers.map((worker) => worker.start()))
      const first = await buy(0, 100)
      await waitFor(async () => (await stores[0]!.count(name)) > 0)
      // In the middle of its work.
      server.child.signal('SIGKILL')
      const second = await buy(100, 200)
      await Promise.all(first.slice(0, 20).map((orderId) => sale.cancel(name, orderId)))
      await Promise.all(second.slice(0, 20).map((orderId) => sale.pay(name, orderId)))
      await waitFor(() => failures.every((count) => count > 3 * maxDeliveries), { timeoutMs: 60_000 })
      await letTimePass(scale(0, 70_000))
      expect(workers.map(({ state }) => state)).toEqual(['waiting', 'waiting'])
      expect(told).toEqual([['FB_SALE_STORE_DOWN'], ['FB_SALE_STORE_DOWN']])

      server = await server.restart()
      await waitFor(() => workers.every(({ state }) => state === 'running'), { timeoutMs: 60_000 })
      await waitFor(async () => (await leftOf(name)) === 0, { timeoutMs: 60_000 })
      expect(await stores[0]!.count(name)).toBe(180)
      for (const orderId of first.slice(0, 20)) expect((await stores[0]!.get(orderId))?.state).toBe('cancelled')
      for (const orderId of second.slice(0, 20)) expect((await stores[0]!.get(orderId))?.state).toBe('paid')
      expect(await client.xlen(saleKeys(name).dead)).toBe(0)
      for (const { counts } of workers) expect(counts).toMatchObject({ dead: 0, outages: 1 })
    } finally {
      await Promise.all(workers.map((worker) => worker.close()))
      await sale.close()
      await Promise.all(stores.map((store) => store.close()))
      await server.stop()
    }
  },
  timeoutMs,
)

function orderOf(result: PurchaseResult): string {
  if (result.code !== 'sold') throw new Error(`not sold but ${result.code}`)
  return result.orderId
}

/** Entries that no worker has taken, and those that none has settled. */
async function leftOf(voucherId: string): Promise<number> {
  const [fields = []] = (await client.xinfo('GROUPS', saleKeys(voucherId).orders)) as unknown[][]
  const field = (name: string) => Number(fields[fields.indexOf(name) + 1])
  return field('pending') + field('lag')
}
