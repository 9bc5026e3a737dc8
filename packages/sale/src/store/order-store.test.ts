import { join } from 'node:path'
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
  /** A second store on the same data, as another worker has it. */
  readonly other: OrderStore
  stop(): Promise<void>
}

const databases: Record<string, () => Promise<Opened>> = {
  SQLite: async () => {
    const path = join(temporaryFolder('sale'), 'orders.sqlite')
    return { store: await sqliteOrderStore(path), other: await sqliteOrderStore(path), stop: async () => {} }
  },
  PostgreSQL: async () => {
    const server = await startPostgres()
    const pool = () => {
      const made = new pg.Pool({ connectionString: server.url, max: 4 })
      // A server that stops tells its idle connections, which nobody listens to otherwise.
      made.on('error', () => {})
      return made
    }
    return { store: postgresOrderStore(pool()), other: postgresOrderStore(pool()), stop: () => server.stop() }
  },
  MariaDB: async () => {
    const server = await startMariadb()
    const pool = () => createPool({ uri: server.url, connectionLimit: 4 })
    return { store: mariadbOrderStore(pool()), other: mariadbOrderStore(pool()), stop: () => server.stop() }
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

  test('a second order of the same user, and one beyond the total, are rejected with the reason', async () => {
    const voucherId = await voucher(2)
    const [, second] = await store.store([event({ voucherId, userId: 'ann' }), event({ voucherId, userId: 'ann' })])
    expect(second).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('user ann') })
    const [, beyond] = await store.store([event({ voucherId }), event({ voucherId })])
    expect(beyond).toMatchObject({ kind: 'rejected', reason: expect.stringContaining('all the orders') })
    expect(await store.count(voucherId)).toBe(2)
  })

  test('an order that was taken back makes room for its user and in the total', async () => {
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
