import { type Hub, openHubServices, startHub } from '@firebreak/hub'
import { DeadLetters, OrderWorker, Sale, SaleBoard, saleKeys, sqliteOrderStore } from '@firebreak/sale'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

let server: RedisServer
let client: Redis
let hub: Hub
let closeServices: () => Promise<void>
let next = 0
const sale = () => new Sale(client, { ids: { next: () => `order-${++next}` } })

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
  closeServices = () => services.close()
  hub = await startHub({ plugins: services.plugins, logLevel: 'fatal' })
})
afterAll(async () => {
  await hub?.close()
  await closeServices?.()
  client?.disconnect()
  await server?.stop()
})

async function api<T>(method: string, path: string, body?: unknown): Promise<T & { code?: string; message?: string }> {
  const init = body === undefined ? {} : { body: JSON.stringify(body), headers: { 'content-type': 'application/json' } }
  return (await (await fetch(`${hub.url}${path}`, { method, ...init })).json()) as T & {
    code?: string
    message?: string
  }
}

test('the hub shows vouchers, orders and dead letters of the sale, and replays letters for the workers', async () => {
  const shop = sale()
  const now = Math.floor(Date.now() / 1000)
  await shop.open({ id: 'tv', begin: now - 10, end: now + 600, stock: 5 })
  const sold = await shop.purchase('tv', 'ann')
  await shop.purchase('tv', 'bob')
  await shop.pay('tv', (sold as { orderId: string }).orderId)
  const listed = await api<{ isKnown: boolean; vouchers: object[] }>('GET', '/v1/sales')
  expect(listed).toMatchObject({
    isKnown: true,
    vouchers: [{ id: 'tv', begin: now - 10, stock: 3, sold: 2, total: 5, buyers: 2, unpaid: 1, deadLetters: 0 }],
  })
  const detail = await api<{ orders: { kind: string; orderId: string; state: string }[] }>('GET', '/v1/sales/tv')
  expect(detail.orders.map(({ kind, orderId, state }) => `${kind} ${orderId} ${state}`)).toEqual([
    'paid order-1 paid',
    'placed order-2 placed',
    'placed order-1 paid',
  ])

  const { dead } = saleKeys('tv')
  const fields = ['kind', 'placed', 'order', 'order-9', 'user', 'eve', 'number', '1', 'at', String(Date.now())]
  const id = (await client.xadd(dead, '*', 'entry', '1-1', 'reason', 'no room', ...fields))!
  expect(await api('GET', '/v1/sales/tv')).toMatchObject({ letters: [{ id, reason: 'no room' }] })
  const store = await sqliteOrderStore(':memory:')
  await store.migrate()
  const worker = new OrderWorker(client, { store, name: 'w', onError: () => {} })
  await worker.start()
  expect(await api('POST', '/v1/sales/tv/dead-letters', { ids: [id], action: 'replay' })).toEqual({ done: 1 })
  await waitFor(async () => {
    const { vouchers } = await api<{ vouchers: { pending: number; waiting: number }[] }>('GET', '/v1/sales')
    return vouchers[0]!.pending === 0 && vouchers[0]!.waiting === 0
  })
  const { entries } = await api<{ entries: { what: string }[] }>('GET', '/v1/audit')
  expect(entries.map(({ what }) => what)).toContain('replay 1 dead letter of voucher tv')
  // The same letter is not replayed twice.
  expect(await api('POST', '/v1/sales/tv/dead-letters', { ids: [id], action: 'replay' })).toMatchObject({
    code: 'FB_NOT_FOUND',
  })
  expect(await api('POST', '/v1/sales/tv/dead-letters', { ids: ['x'], action: 'replay' })).toMatchObject({
    code: 'FB_INPUT_INVALID',
  })
  await worker.close()
  await shop.close()
})

test('a hub without a sale says so, and so does one whose Redis is unreachable', async () => {
  const plain = await openHubServices()
  const lost = await openHubServices({
    sale: {
      vouchers: () => Promise.reject(new Error('connect ECONNREFUSED')),
      orders: async () => [],
      letters: async () => [],
      settle: async () => 0,
    },
  })
  const [without, away] = await Promise.all(
    [plain, lost].map(({ plugins }) => startHub({ plugins, logLevel: 'fatal' })),
  )
  const get = async (url: string) => (await fetch(url)).json()
  expect(await get(`${without!.url}/v1/sales`)).toEqual({ isKnown: false, vouchers: [] })
  expect(await get(`${without!.url}/v1/sales/tv`)).toMatchObject({
    code: 'FB_NOT_FOUND',
    message: expect.stringContaining('--sale-redis'),
  })
  expect(await get(`${away!.url}/v1/sales`)).toMatchObject({ code: 'FB_SALE_AWAY' })
  await Promise.all([without!.close(), away!.close()])
  await Promise.all([plain.close(), lost.close()])
})
