import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { startMariadb, startPostgres, temporaryFolder } from '@firebreak/testkit'
import { createPool } from 'mysql2/promise'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { mariadbOrderStore } from './mariadb.ts'
import type { OrderEvent, OrderStore } from './order-store.ts'
import { postgresOrderStore } from './postgres.ts'
import { sqliteOrderStore } from './sqlite.ts'

interface Opened {
  readonly store: OrderStore
  /** A second store on the same data, as in another worker. */
  readonly other: OrderStore
  /** Runs a statement outside the stores. */
  execute(sql: string): Promise<unknown>
  /** A statement that makes the database refuse a user called "forbidden". */
  readonly forbidding: string
  stop(): Promise<void>
}

const check = "ALTER TABLE sale_orders ADD CONSTRAINT not_forbidden CHECK (user_id <> 'forbidden')"

const databases: Record<string, () => Promise<Opened>> = {
  SQLite: async () => {
    const path = join(temporaryFolder('sale'), 'orders.sqlite')
    return {
      store: await sqliteOrderStore(path),
      other: await sqliteOrderStore(path),
      execute: async (sql) => {
        const database = new DatabaseSync(path)
        database.exec(sql)
        database.close()
      },
      forbidding:
        "CREATE TRIGGER not_forbidden BEFORE INSERT ON sale_orders WHEN NEW.user_id = 'forbidden' BEGIN SELECT RAISE(ABORT, 'forbidden'); END",
      stop: async () => {},
    }
  },
  PostgreSQL: async () => {
    const server = await startPostgres()
    const pool = () => {
      const made = new pg.Pool({ connectionString: server.url, max: 4 })
      // A server that stops notifies its idle connections, which have no other listener.
      made.on('error', () => {})
      return made
    }
    const beside = pool()
    return {
      store: postgresOrderStore(pool()),
      other: postgresOrderStore(pool()),
      execute: (sql) => beside.query(sql),
      forbidding: check,
      stop: async () => {
        await beside.end()
        await server.stop()
      },
    }
  },
  MariaDB: async () => {
    const server = await startMariadb()
    const pool = () => createPool({ uri: server.url, connectionLimit: 4 })
    const beside = pool()
    return {
      store: mariadbOrderStore(pool()),
      other: mariadbOrderStore(pool()),
      execute: (sql) => beside.query(sql),
      forbidding: check,
      stop: async () => {
        await beside.end()
        await server.stop()
      },
    }
  },
}

let counter = 0
function event(changes: Partial<OrderEvent> = {}): OrderEvent {
  counter++
  return {
    kind: 'placed',
    voucherId: 'v',
    orderId: `o${counter}`,
    userId: `u${counter}`,
    number: 1,
    at: 1_700_000_000_000,
    ...changes,
  }
}

describe.each(Object.keys(databases))('orders in %s', (name) => {
  let opened: Opened
  let store: OrderStore
  beforeAll(async () => {
    opened = await databases[name]!()
    store = opened.store
    await store.migrate()
    await opened.other.migrate()
  })
  afterAll(async () => {
    await opened.store.close()
    await opened.other.close()
    await opened.stop()
  })

  async function voucher(total: number): Promise<string> {
    const voucherId = `v-${++counter}`
    await store.setTotal(voucherId, total)
    return voucherId
  }

  test('an order is stored once, however often it is delivered', async () => {
    const voucherId = await voucher(10)
    const order = event({ voucherId })
    expect(await store.store([order, order])).toEqual([{ kind: 'stored' }, { kind: 'stored' }])
    expect(await store.store([order])).toEqual([{ kind: 'stored' }])
    expect(await store.count(voucherId)).toBe(1)
    expect(await store.get(order.orderId)).toMatchObject({ userId: order.userId, state: 'placed', placedAt: order.at })
    expect(await store.get('nobody')).toBe(undefined)
  })

  test('a broken or unreachable database is an outage, never the fault of an order', async () => {
    const broken = await databases[name]!()
    await broken.store.migrate()
    await broken.execute('DROP TABLE sale_orders')
    const outage = { code: 'FB_SALE_STORE_DOWN', isOutage: true }
    await expect(broken.store.store([event()])).rejects.toMatchObject(outage)
    await broken.stop()
    await expect(broken.store.store([event()])).rejects.toMatchObject(outage)
    await broken.store.close()
    await broken.other.close()
  })

  test('a value that the database itself refuses is the fault of the order', async () => {
    const voucherId = await voucher(5)
    await opened.execute(opened.forbidding)
    const refused = { code: 'FB_SALE_STORE', isOutage: false }
    await expect(store.store([event({ voucherId, userId: 'forbidden' })])).rejects.toMatchObject(refused)
    expect(await store.store([event({ voucherId })])).toEqual([{ kind: 'stored' }])
  })

  test('a second order of the same user, and one beyond the total, are rejected with the reason', async () => {
    const voucherId = await voucher(2)
    const [, second] = await store.store([event({ voucherId, userId: 'ann' }), event({ voucherId, userId: 'ann' })])
    expect(second).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('user ann') })
    const [, beyond] = await store.store([event({ voucherId }), event({ voucherId })])
    expect(beyond).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('all the orders') })
    expect(await store.count(voucherId)).toBe(2)
  })

  test('a withdrawn order makes room for its user and in the total', async () => {
    const voucherId = await voucher(1)
    const first = event({ voucherId, userId: 'ann' })
    await store.store([first, { ...first, kind: 'cancelled' }])
    expect(await store.count(voucherId)).toBe(0)
    expect(await store.store([event({ voucherId, userId: 'ann' })])).toEqual([{ kind: 'stored' }])
    expect((await store.get(first.orderId))?.state).toBe('cancelled')
  })

  test('an end state that comes before its order wins', async () => {
    const voucherId = await voucher(5)
    const cancelled = event({ voucherId })
    await store.store([{ ...cancelled, kind: 'cancelled' }])
    await store.store([cancelled])
    expect((await store.get(cancelled.orderId))?.state).toBe('cancelled')
    const paid = event({ voucherId })
    await store.store([{ ...paid, kind: 'paid' }])
    await store.store([paid])
    expect((await store.get(paid.orderId))?.state).toBe('paid')
    expect(await store.count(voucherId)).toBe(1)
  })

  test('an order id with different content is rejected, not mistaken for the existing order', async () => {
    const voucherId = await voucher(10)
    const order = event({ voucherId, userId: 'ann', number: 1 })
    await store.store([order])
    for (const other of [{ userId: 'bob' }, { number: 2 }, { voucherId: await voucher(5) }])
      expect(await store.store([{ ...order, ...other }])).toEqual([
        {
          kind: 'rejected',
          reason: expect.stringContaining(`order id ${order.orderId} is taken by number 1 of user ann`),
        },
      ])
    expect(await store.count(voucherId)).toBe(1)
  })

  test('user ids are refused or distinguished by the same rule everywhere', async () => {
    const voucherId = await voucher(20)
    const users = ['ann', 'ann ', 'Ann', 'änn', 'a\u0308nn', 'x'.repeat(255), '\u{1f600}'.repeat(127)]
    const events = users.map((userId) => event({ voucherId, userId, limit: 1 }))
    expect(await store.store(events)).toEqual(users.map(() => ({ kind: 'stored' })))
    for (const { orderId, userId } of events) expect((await store.get(orderId))?.userId).toBe(userId)
    const wrong = ['', 'x'.repeat(256), 'a\0b', '\ud800'].map((userId) => event({ voucherId, userId }))
    const results = await store.store([...wrong, event({ voucherId, orderId: 'o\u00e4' })])
    expect(results.map(({ kind }) => kind)).toEqual(Array.from({ length: 5 }, () => 'rejected'))
    expect(await store.count(voucherId)).toBe(users.length)
  })

  test('a user holds no more orders than the order allows, and their numbers are never reused', async () => {
    const voucherId = await voucher(20)
    const of = (number: number) => event({ voucherId, userId: 'ann', number, limit: 2 })
    const [first, second, third] = [of(1), of(2), of(3)]
    await store.store([first, second])
    expect((await store.store([third]))[0]).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('may hold 2'),
    })
    await store.store([{ ...first, kind: 'cancelled' }])
    expect(await store.store([third])).toEqual([{ kind: 'stored' }])
    expect(await store.count(voucherId)).toBe(2)
  })

  test('the total that an order carries applies, whatever was set before', async () => {
    const voucherId = await voucher(1)
    await store.store([event({ voucherId, total: 1 })])
    expect((await store.store([event({ voucherId, total: 1 })]))[0]).toMatchObject({ kind: 'rejected' })
    expect(await store.store([event({ voucherId, total: 2 })])).toEqual([{ kind: 'stored' }])
  })

  test('a paid order is refunded once, and a paid one cannot be cancelled', async () => {
    const voucherId = await voucher(5)
    const order = event({ voucherId })
    await store.store([order, { ...order, kind: 'paid' }])
    expect((await store.store([{ ...order, kind: 'cancelled' }]))[0]).toMatchObject({
      kind: 'rejected',
      reason: expect.stringContaining('cannot become cancelled'),
    })
    const refund = { ...order, kind: 'refunded' } as const
    expect(await store.store([refund, refund, { ...order, kind: 'paid' }, order])).toEqual(
      Array.from({ length: 4 }, () => ({ kind: 'stored' })),
    )
    expect((await store.get(order.orderId))?.state).toBe('refunded')
    expect(await store.count(voucherId)).toBe(0)
  })

  test('workers that store the same vouchers in any order never reject each other', async () => {
    const vouchers = [await voucher(100), await voucher(100)]
    const batches = Array.from({ length: 20 }, (_, index) => {
      const placed = [0, 1, 2, 3].map((offset) => event({ voucherId: vouchers[(index + offset) % 2]! }))
      return [...placed, { ...placed[0]!, kind: 'cancelled' as const }]
    })
    const results = await Promise.all(
      batches.map((batch, index) => (index % 2 === 0 ? store : opened.other).store(batch)),
    )
    expect(results.flat().every(({ kind }) => kind === 'stored')).toBe(true)
    expect((await store.count(vouchers[0]!)) + (await store.count(vouchers[1]!))).toBe(60)
  })

  test('two workers at once never store more than the total', async () => {
    const voucherId = await voucher(20)
    const batches = Array.from({ length: 12 }, () => Array.from({ length: 5 }, () => event({ voucherId })))
    // Databases may refuse one of two colliding transactions; a worker then delivers the batch again.
    const storeAll = async (target: OrderStore, batch: OrderEvent[]) => {
      for (let attempt = 0; ; attempt++) {
        try {
          return await target.store(batch)
        } catch (error) {
          if (attempt > 20) throw error
        }
      }
    }
    const results = await Promise.all(
      batches.map((batch, index) => storeAll(index % 2 === 0 ? store : opened.other, batch)),
    )
    expect(results.flat().filter(({ kind }) => kind === 'stored')).toHaveLength(20)
    expect(await store.count(voucherId)).toBe(20)
  })
})

test('while another program has the SQLite file locked, the process goes on and the order waits', async () => {
  const path = join(temporaryFolder('sale'), 'orders.sqlite')
  const store = await sqliteOrderStore(path)
  await store.migrate()
  const other = new DatabaseSync(path)
  other.exec('BEGIN IMMEDIATE')
  const order = { kind: 'placed', voucherId: 'v', orderId: 'o', userId: 'u', number: 1, at: 1, total: 1 } as const
  const storing = store.store([order])
  // If the thread waited for the lock, it would never come to release it.
  await new Promise((resolve) => setImmediate(resolve))
  other.exec('COMMIT')
  expect(await storing).toEqual([{ kind: 'stored' }])
  other.close()
  await store.close()
})
