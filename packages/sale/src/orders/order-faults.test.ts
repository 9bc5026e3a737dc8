import { type RedisServer, startRedis, uncaughtDuring, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { DeadLetters } from '../dead-letters/dead-letters.ts'
import { type PurchaseResult, Sale } from '../purchase/sale.ts'
import { saleKeys } from '../sale-keys.ts'
import type { OrderEvent, OrderStore } from '../store/order-store.ts'
import { sqliteOrderStore } from '../store/sqlite.ts'
import { OrderWorker, type OrderWorkerOptions } from './order-worker.ts'

let server: RedisServer
let client: Redis
let sale: Sale
let store: OrderStore
let workers: OrderWorker[] = []
let counter = 0

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
  sale = new Sale(client, { ids: { next: () => `order-${++counter}` } })
})
beforeEach(async () => {
  await client.flushall()
  store = await sqliteOrderStore(':memory:')
  await store.migrate()
})
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.close()))
  workers = []
})
afterAll(async () => {
  await sale.close()
  client.disconnect()
  await server.stop()
})

async function worker(options: Partial<OrderWorkerOptions> = {}): Promise<OrderWorker> {
  const made = new OrderWorker(client, { store, name: `w${workers.length}`, scanMs: 20, ...options })
  workers.push(made)
  await made.start()
  return made
}

async function open(stock: number, perUser = 1): Promise<string> {
  const id = `v${++counter}`
  const now = Math.floor(Date.now() / 1000)
  await sale.open({ id, begin: now - 5, end: now + 1000, stock, perUser })
  return id
}

async function pendingCount(voucherId: string): Promise<number> {
  const [count] = (await client.call('XPENDING', saleKeys(voucherId).orders, 'orders')) as [number]
  return count
}

async function isDone(voucherId: string): Promise<boolean> {
  const [info] = (await client.call('XINFO', 'GROUPS', saleKeys(voucherId).orders)) as string[][]
  const fields = new Map(info!.flatMap((name, index) => (index % 2 === 0 ? [[name, info![index + 1]]] : [])))
  const last = await client.xrevrange(saleKeys(voucherId).orders, '+', '-', 'COUNT', 1)
  return fields.get('last-delivered-id') === last[0]?.[0] && (await pendingCount(voucherId)) === 0
}

function orderOf(result: PurchaseResult): string {
  if (result.code !== 'sold') throw new Error(`not sold but ${result.code}`)
  return result.orderId
}

/** A store that does something before each call. */
function wrapped(before: (events: readonly OrderEvent[]) => Promise<void> | void, inner = store): OrderStore {
  return {
    migrate: () => inner.migrate(),
    async setTotal(voucherId, total) {
      await before([])
      return inner.setTotal(voucherId, total)
    },
    async store(events) {
      await before(events)
      return inner.store(events)
    },
    get: (orderId) => inner.get(orderId),
    async count(voucherId) {
      await before([])
      return inner.count(voucherId)
    },
    close: () => inner.close(),
  }
}

test('a later event of a user waits for an earlier one that another worker has', async () => {
  const id = await open(1)
  const seen: string[] = []
  let release = () => {}
  const held = new Promise<void>((resolve) => {
    release = resolve
  })
  let isFirst = true
  const slow = wrapped(async (events) => {
    if (events.length > 0 && isFirst) {
      isFirst = false
      await held
    }
    seen.push(...events.map(({ kind, orderId }) => `${kind} ${orderId}`))
  })
  const quick = wrapped((events) => void seen.push(...events.map(({ kind, orderId }) => `${kind} ${orderId}`)))
  await worker({ store: slow, batch: 1 })
  const first = orderOf(await sale.purchase(id, 'ann'))
  await waitFor(() => !isFirst)
  const other = await worker({ store: quick })
  await sale.cancel(id, first)
  const second = orderOf(await sale.purchase(id, 'ann'))
  // The other worker has both entries, and may store neither.
  await waitFor(async () => (await pendingCount(id)) === 3)
  const before = await client.info('commandstats')
  await waitFor(async () => (await client.info('commandstats')) !== before)
  expect(seen).toEqual([])
  release()
  await waitFor(() => isDone(id))
  expect(seen).toEqual([`placed ${first}`, `cancelled ${first}`, `placed ${second}`])
  expect(other.counts.dead).toBe(0)
  expect(await store.count(id)).toBe(1)
})

test('an order that replaces a cancelled one of another user is not given up before the cancellation is stored', async () => {
  const id = await open(1)
  await client.xgroup('CREATE', saleKeys(id).orders, 'orders', '0', 'MKSTREAM')
  const first = orderOf(await sale.purchase(id, 'ann'))
  const starter = await worker()
  await waitFor(async () => (await store.count(id)) === 1)
  await starter.close()
  await sale.cancel(id, first)
  // A worker that died has the cancellation.
  await client.xreadgroup('GROUP', 'orders', 'dead', 'COUNT', 10, 'STREAMS', saleKeys(id).orders, '>')
  const second = orderOf(await sale.purchase(id, 'bob'))
  let tries = 0
  const counting = wrapped((events) => {
    if (events.some(({ orderId }) => orderId === second)) tries++
  })
  // Long enough for some tries on a busy machine.
  const patient = await worker({ store: counting, claimAfterMs: 4000 })
  await waitFor(() => tries > 2)
  await waitFor(async () => (await store.get(second))?.state === 'placed')
  expect((await store.get(first))?.state).toBe('cancelled')
  expect(patient.counts.dead).toBe(0)
})

test('a store that is down pauses the worker, is reported once, and loses no order', async () => {
  const id = await open(20)
  let isDown = false
  let tries = 0
  const failing = wrapped(() => {
    if (!isDown) return
    tries++
    throw new Error('connect ECONNREFUSED')
  })
  const errors: string[] = []
  let recoveries = 0
  const made = await worker({
    store: failing,
    claimAfterMs: 1,
    maxDeliveries: 2,
    maxRetryMs: 5,
    onError: (error) => errors.push(error.message),
    onRecovery: () => recoveries++,
  })
  await sale.purchase(id, 'first')
  await waitFor(async () => (await store.count(id)) === 1)
  isDown = true
  await Promise.all(Array.from({ length: 15 }, (_, index) => sale.purchase(id, `u${index}`)))
  await waitFor(() => tries > 30)
  expect(made.state).toBe('waiting')
  expect(errors).toEqual(['the order store is down: connect ECONNREFUSED'])
  isDown = false
  await waitFor(() => made.state === 'running')
  await waitFor(() => isDone(id))
  expect(await store.count(id)).toBe(16)
  expect(recoveries).toBe(1)
  expect(made.counts).toMatchObject({ outages: 1, dead: 0 })
  expect(await client.xlen(saleKeys(id).dead)).toBe(0)
})

const ownError = new Error('the listener’s own')
const throwing = () => {
  throw ownError
}

test.each([[undefined], [null], ['text'], [{ code: 7 }]])(
  'neither listeners that throw nor a store that throws %j stop a worker',
  async (trouble) => {
    const id = await open(5)
    let isDown = true
    const failing = wrapped(() => {
      if (isDown) throw trouble
    })
    const thrown = await uncaughtDuring(async () => {
      const made = await worker({ store: failing, maxRetryMs: 5, onError: throwing, onRecovery: throwing })
      await sale.purchase(id, 'ann')
      await waitFor(() => made.state === 'waiting')
      isDown = false
      await waitFor(async () => (await store.count(id)) === 1)
      await waitFor(() => made.state === 'running')
    })
    expect(thrown.length).toBeGreaterThanOrEqual(2)
    expect(new Set(thrown)).toEqual(new Set([ownError]))
  },
)

test('a store that never answers counts as down', async () => {
  const id = await open(3)
  let isHung = true
  const hung = wrapped((events) => (isHung && events.length > 0 ? new Promise<void>(() => {}) : undefined))
  const errors: string[] = []
  await worker({ store: hung, storeTimeoutMs: 30, maxRetryMs: 10, onError: (error) => errors.push(error.message) })
  await sale.purchase(id, 'ann')
  await waitFor(() => errors.some((message) => message.includes('did not answer for 30 ms')))
  isHung = false
  await waitFor(async () => (await store.count(id)) === 1)
})

test('a worker that restarts under its name continues with its entries', async () => {
  const id = await open(3)
  await client.xgroup('CREATE', saleKeys(id).orders, 'orders', '0', 'MKSTREAM')
  await sale.purchase(id, 'ann')
  await client.xreadgroup('GROUP', 'orders', 'again', 'COUNT', 10, 'STREAMS', saleKeys(id).orders, '>')
  await worker({ name: 'again', claimAfterMs: 600_000 })
  await waitFor(async () => (await store.count(id)) === 1)
})

test('dead letters are reported, listed with the reason, replayed and discarded', async () => {
  const id = await open(5)
  let isPoison = true
  const picky = wrapped((events) => {
    if (isPoison && events.some(({ userId }) => userId === 'poison')) throw new Error('no poison here')
  })
  const errors: Error[] = []
  await worker({ store: picky, claimAfterMs: 5, maxDeliveries: 2, onError: (error) => errors.push(error) })
  await client.xadd(saleKeys(id).orders, '*', 'kind', 'nonsense', 'order', 'x')
  const orderId = orderOf(await sale.purchase(id, 'poison'))
  await sale.pay(id, orderId)
  await sale.purchase(id, 'ann')
  const dead = new DeadLetters(client)
  await waitFor(async () => (await dead.count()).get(id) === 3)
  expect(errors.filter(({ name, message }) => message.includes('is a dead letter') && name !== '')).toHaveLength(3)
  const letters = await dead.list(id)
  expect(letters.map(({ reason, cause, fields }) => ({ reason, cause, kind: fields['kind'] }))).toEqual([
    { reason: 'its kind is "nonsense"', cause: undefined, kind: 'nonsense' },
    { reason: 'it failed 2 times', cause: 'no poison here', kind: 'placed' },
    { reason: 'it failed 2 times', cause: 'no poison here', kind: 'paid' },
  ])
  expect(await dead.list(id, { after: letters[0]!.id, limit: 1 })).toEqual([letters[1]])
  expect(await dead.discard(id, [letters[0]!.id])).toBe(1)
  expect(await dead.discard(id, [letters[0]!.id])).toBe(0)
  isPoison = false
  expect(
    await dead.replay(
      id,
      letters.slice(1).map((letter) => letter.id),
    ),
  ).toBe(2)
  await waitFor(async () => (await store.get(orderId))?.state === 'paid')
  expect(await dead.count()).toEqual(new Map())
})

test('if there is no room for dead letters, entries stay pending, which is reported', async () => {
  const id = await open(5)
  const errors: string[] = []
  for (const order of ['x', 'y']) await client.xadd(saleKeys(id).orders, '*', 'kind', 'nonsense', 'order', order)
  await worker({ claimAfterMs: 20, maxDeadLetters: 1, onError: (error) => errors.push(error.message) })
  await waitFor(() => errors.some((message) => message.includes('so it stays pending')))
  expect(await pendingCount(id)).toBe(1)
  const dead = new DeadLetters(client)
  await dead.discard(
    id,
    (await dead.list(id)).map((letter) => letter.id),
  )
  await waitFor(async () => (await pendingCount(id)) === 0)
  expect((await dead.list(id))[0]?.fields['order']).toBe('y')
})

test('a voucher made by hand is served through every step', async () => {
  const now = Math.floor(Date.now() / 1000)
  await worker()
  await client.hset('seckill:hand', 'begin', now - 5, 'end', now + 100, 'stock', 2)
  const orders = [orderOf(await sale.purchase('hand', 'ann')), orderOf(await sale.purchase('hand', 'bob'))]
  expect(await sale.purchase('hand', 'eve')).toMatchObject({ code: 'soldout' })
  for (const orderId of orders) await waitFor(async () => (await store.get(orderId))?.state === 'placed')
})

test('orders for stock that was added later, by restock or by hand, are stored too', async () => {
  const id = await open(1)
  const made = await worker()
  await sale.purchase(id, 'ann')
  await sale.restock(id, 1)
  await sale.purchase(id, 'bob')
  await client.hset(saleKeys(id).voucher, 'stock', 1)
  await sale.purchase(id, 'eve')
  await waitFor(async () => (await store.count(id)) === 3)
  expect(made.counts.dead).toBe(0)
})

test('unpaid orders are cancelled by the workers', async () => {
  const hasty = new Sale(client, { ids: { next: () => `hasty-${++counter}` }, payWithinMs: 1 })
  const id = await open(1)
  const orderId = orderOf(await hasty.purchase(id, 'ann'))
  const made = await worker()
  await waitFor(async () => (await store.get(orderId))?.state === 'expired')
  expect(made.counts.expired).toBe(1)
  expect(await sale.stock(id)).toEqual({ stock: 1, total: 1, buyers: 0 })
  await hasty.close()
})

test('stored entries are removed from the stream, pending ones and those of other groups are not', async () => {
  const id = await open(1000)
  const { orders } = saleKeys(id)
  await client.config('SET', 'stream-node-max-entries', '10')
  await Promise.all(Array.from({ length: 300 }, (_, index) => sale.purchase(id, `u${index}`)))
  await client.xgroup('CREATE', orders, 'reports', '0')
  const made = await worker({ keepStoredMs: 0 })
  await waitFor(async () => (await store.count(id)) === 300)
  await made.close()
  expect(await client.xlen(orders)).toBe(300)
  await client.xgroup('DESTROY', orders, 'reports')
  const next = await worker({ keepStoredMs: 0, name: 'trimmer' })
  await waitFor(async () => (await client.xlen(orders)) < 50)
  expect(next.counts.dead).toBe(0)
  expect(await store.count(id)).toBe(300)
})

test('an order that the store has refused is not accepted because it was paid', async () => {
  const voucherId = await open(10)
  // An order that Redis has lost and the store has: of the same user, with a higher number.
  const lost = { kind: 'placed', voucherId, userId: 'ann', orderId: 'lost', number: 9, at: 1, total: 10 } as const
  expect(await store.store([lost])).toEqual([{ kind: 'stored' }])
  const orderId = orderOf(await sale.purchase(voucherId, 'ann'))
  await sale.pay(voucherId, orderId)
  await worker()
  const letters = new DeadLetters(client)
  await waitFor(async () => (await letters.list(voucherId)).length === 2, { what: 'both entries to be dead letters' })
  expect((await letters.list(voucherId)).map(({ fields }) => fields['kind'])).toEqual(['placed', 'paid'])
  expect(await store.get(orderId)).toBeUndefined()
  expect(await store.count(voucherId)).toBe(1)
})

test('an event waits for the one before it, however many entries other workers have not settled', async () => {
  const id = await open(20_000)
  const { orders } = saleKeys(id)
  await client.xgroup('CREATE', orders, 'orders', '0', 'MKSTREAM')
  const pipeline = client.pipeline()
  const entry = (kind: string, order: string, user: string, prev: string) =>
    ['kind', kind, 'order', order, 'user', user, 'number', '1', 'at', '1', 'total', '20000', 'prev', prev] as const
  // More than one listing returns.
  for (let index = 0; index < 10_050; index++)
    pipeline.xadd(orders, `${index + 1}-0`, ...entry('placed', `o${index}`, `u${index}`, '-'))
  pipeline.xreadgroup('GROUP', 'orders', 'slow', 'COUNT', 20_000, 'STREAMS', orders, '>')
  pipeline.xadd(orders, '20000-0', ...entry('cancelled', 'o10049', 'u10049', '10050-0'))
  await pipeline.exec()
  const early: string[] = []
  const seeing = wrapped((events) => void early.push(...events.map(({ kind }) => kind)))
  const made = await worker({ store: seeing, claimAfterMs: 600_000 })
  await waitFor(async () => (await pendingCount(id)) === 10_051)
  const looks = async () => Number((await client.info('commandstats')).match(/cmdstat_xpending:calls=(\d+)/)?.[1])
  const before = await looks()
  await waitFor(async () => (await looks()) > before + 3)
  expect(early).toEqual([])
  // The slow worker continues, and finishes all of its own.
  await store.store([
    { kind: 'placed', voucherId: id, orderId: 'o10049', userId: 'u10049', number: 1, at: 1, total: 20_000 },
  ])
  await client.xack(orders, 'orders', ...Array.from({ length: 10_050 }, (_, index) => `${index + 1}-0`))
  await waitFor(async () => (await pendingCount(id)) === 0)
  expect(early).toEqual(['cancelled'])
  expect((await store.get('o10049'))?.state).toBe('cancelled')
  expect(made.counts.dead).toBe(0)
})

test('a worker that has nothing left to store does not take its store for recovered', async () => {
  const id = await open(5)
  let isDown = false
  let tries = 0
  const failing = wrapped(() => {
    if (!isDown) return
    tries++
    throw new Error('connect ECONNREFUSED')
  })
  const errors: string[] = []
  let recoveries = 0
  const made = await worker({
    store: failing,
    maxRetryMs: 5,
    onError: (error) => errors.push(error.message),
    onRecovery: () => recoveries++,
  })
  await sale.purchase(id, 'eve')
  await waitFor(async () => (await store.count(id)) === 1)
  isDown = true
  await sale.purchase(id, 'ann')
  await waitFor(() => made.state === 'waiting')
  // While this worker could not reach the store, another one took its entry over and stored it.
  const [[entry]] = (await client.call('XPENDING', saleKeys(id).orders, 'orders', '-', '+', 1)) as [[string]]
  await client.xack(saleKeys(id).orders, 'orders', entry)
  const before = tries
  await waitFor(() => tries > before + 5)
  await sale.purchase(id, 'bob')
  await waitFor(() => tries > before + 10)
  expect([made.state, recoveries, errors.length]).toEqual(['waiting', 0, 1])
  isDown = false
  await waitFor(async () => (await store.count(id)) === 2)
  await waitFor(() => made.state === 'running')
  expect([recoveries, errors.length]).toEqual([1, 1])
})
