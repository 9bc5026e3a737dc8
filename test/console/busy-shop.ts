import type { SaleDesk } from '@firebreak/hub'
import { LockReporter, Locks } from '@firebreak/locks'
import { DeadLetters, OrderWorker, Sale, SaleBoard, saleKeys, sqliteOrderStore } from '@firebreak/sale'
import type { RedisServer } from '@firebreak/testkit'
import { Redis } from 'ioredis'

/** A shop on the busy hub: locks that are held and waited for, ids that are asked for, a sale with orders. */
export interface Shop {
  /** Forgets that a lock is held: another process has it until somebody releases it. */
  readonly locks: Locks
  /** Puts a letter among the dead ones of the voucher `tv`; gives its id. */
  bury(order: string): Promise<string>
  close(): Promise<void>
}

/** What the hub's API asks, made of the sale's own classes. */
export function saleDesk(redis: Redis): SaleDesk {
  const board = new SaleBoard(redis)
  const letters = new DeadLetters(redis)
  return {
    vouchers: () => board.vouchers(),
    orders: (id, limit) => board.orders(id, limit),
    letters: (id, limit) => letters.list(id, { limit }),
    settle: (id, ids, action) => letters[action](id, ids),
  }
}

export const lockNames = ['stock:100', 'order:77', 'report:nightly']

export async function startShop(server: RedisServer, hubUrl: string): Promise<Shop> {
  const redis = new Redis(server.port)
  // A holder learns of a forced release when it renews, three times a lease.
  const holder = new Locks(redis, { leaseMs: 6000 })
  const waiters = new Locks(redis)
  const reporters = [
    new LockReporter(holder, { hubUrl, serviceId: 'shop', hostId: 'host-1', everyMs: 500 }),
    new LockReporter(waiters, { hubUrl, serviceId: 'orders', hostId: 'host-2', everyMs: 500 }),
  ]
  for (const name of lockNames) await holder.getLock(name).lock()
  const waiting = [1, 2, 3].map(() => waiters.getLock('stock:100').lock())
  for (const one of waiting) one.then((handle) => handle.unlock()).catch(() => {})

  let next = 0
  const sale = new Sale(redis, { ids: { next: () => `order-${++next}` } })
  const now = Math.floor(Date.now() / 1000)
  await sale.open({ id: 'tv', begin: now - 600, end: now + 86_400, stock: 60 })
  await sale.open({ id: 'phone', begin: now + 7200, end: now + 10_800, stock: 500, perUser: 2 })
  await sale.open({ id: 'lamp', begin: now - 90_000, end: now - 86_400, stock: 12 })
  for (let user = 1; user <= 42; user++) {
    const bought = await sale.purchase('tv', `user-${user}`)
    if (user % 3 === 0 && bought.code === 'sold') await sale.pay('tv', bought.orderId)
  }
  const store = await sqliteOrderStore(':memory:')
  await store.migrate()
  const worker = new OrderWorker(redis, { store, name: 'worker-1', onError: () => {} })
  await worker.start()

  const tags = ['order', 'user', 'ticket']
  for (const tag of tags) await fetch(`${hubUrl}/api/ids/tags/${tag}`, { method: 'PUT' })
  const ids = setInterval(() => {
    for (const tag of tags) void fetch(`${hubUrl}/api/segment/get/${tag}`).catch(() => {})
  }, 200)
  return {
    locks: holder,
    async bury(order) {
      const fields = ['kind', 'placed', 'order', order, 'user', 'eve', 'number', '1', 'at', String(Date.now())]
      const why = ['entry', '1-1', 'reason', 'the store refuses it', 'cause', 'CHECK constraint failed: amount']
      return (await redis.xadd(saleKeys('tv').dead, '*', ...why, ...fields))!
    },
    async close() {
      clearInterval(ids)
      for (const reporter of reporters) reporter.stop()
      await worker.close()
      await sale.close()
      await Promise.all([holder.close(), waiters.close()])
      redis.disconnect()
    },
  }
}
