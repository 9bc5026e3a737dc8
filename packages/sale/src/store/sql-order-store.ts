import type { OrderEvent, OrderStore, StoredOrder, StoreResult } from './order-store.ts'

/** One row as the drivers give it: numbers may come as text. */
export type SqlRow = Readonly<Record<string, unknown>>

/** What the store needs of a database: statements with `?` in a transaction on one connection. */
export interface SqlConnection {
  /** Runs a statement; the rows of a SELECT, and how many rows an INSERT or UPDATE changed. */
  query(sql: string, values: readonly (string | number)[]): Promise<{ rows: readonly SqlRow[]; changed: number }>
}

/** A database with its dialect. */
export interface SqlDatabase {
  /** Statements that make the tables. */
  readonly schema: readonly string[]
  /** `INSERT` that does nothing on a duplicate of the primary key or a unique index. */
  insertIgnore(table: string, columns: readonly string[]): string
  /** Runs `work` in one transaction; a throw rolls it back. */
  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T>
  close(): Promise<void>
}

const orderColumns = [
  'order_id',
  'voucher_id',
  'user_id',
  'live_number',
  'number',
  'state',
  'placed_at',
  'changed_at',
] as const

/**
 * Orders in an SQL database.
 *
 * `live_number` is the user's how-manieth order, and NULL once the order was taken back. The unique index on
 * (voucher, user, live_number) so forbids a second live order and allows a new one after a refund: NULLs never collide.
 * The total is kept by a conditional UPDATE of the voucher's row, which also makes concurrent workers take turns.
 */
export class SqlOrderStore implements OrderStore {
  readonly #database: SqlDatabase

  constructor(database: SqlDatabase) {
    this.#database = database
  }

  async migrate(): Promise<void> {
    await this.#database.transaction(async (connection) => {
      for (const statement of this.#database.schema) await connection.query(statement, [])
    })
  }

  async setTotal(voucherId: string, total: number): Promise<void> {
    await this.#database.transaction(async (connection) => {
      const insert = this.#database.insertIgnore('sale_vouchers', ['voucher_id', 'total', 'live'])
      await connection.query(insert, [voucherId, total, 0])
      await connection.query('UPDATE sale_vouchers SET total = ? WHERE voucher_id = ?', [total, voucherId])
    })
  }

  store(events: readonly OrderEvent[]): Promise<StoreResult[]> {
    return this.#database.transaction(async (connection) => {
      const results: StoreResult[] = []
      for (const event of events) {
        results.push(
          event.kind === 'placed' ? await this.#place(connection, event) : await this.#settle(connection, event),
        )
      }
      return results
    })
  }

  async #place(connection: SqlConnection, event: OrderEvent): Promise<StoreResult> {
    // The voucher's row first: it is the lock that makes the count and the insert one step.
    const { changed } = await connection.query(
      'UPDATE sale_vouchers SET live = live + 1 WHERE voucher_id = ? AND live < total',
      [event.voucherId],
    )
    const inserted = await this.#insert(connection, event, event.number, 'placed')
    if (inserted && changed === 1) return { kind: 'stored' }
    if (inserted) {
      await connection.query('DELETE FROM sale_orders WHERE order_id = ?', [event.orderId])
      return { kind: 'rejected', reason: `voucher ${event.voucherId} has all the orders it may have` }
    }
    if (changed === 1)
      await connection.query('UPDATE sale_vouchers SET live = live - 1 WHERE voucher_id = ?', [event.voucherId])
    const known = await this.#find(connection, event.orderId)
    if (known !== undefined) return { kind: 'stored' }
    return {
      kind: 'rejected',
      reason: `user ${event.userId} has order number ${event.number} of voucher ${event.voucherId} already`,
    }
  }

  async #settle(connection: SqlConnection, event: OrderEvent): Promise<StoreResult> {
    const isLive = event.kind === 'paid'
    const changed = isLive
      ? await connection.query(
          "UPDATE sale_orders SET state = ?, changed_at = ? WHERE order_id = ? AND state = 'placed'",
          [event.kind, event.at, event.orderId],
        )
      : await connection.query(
          "UPDATE sale_orders SET state = ?, changed_at = ?, live_number = NULL WHERE order_id = ? AND state = 'placed'",
          [event.kind, event.at, event.orderId],
        )
    if (changed.changed === 1) {
      if (!isLive)
        await connection.query('UPDATE sale_vouchers SET live = live - 1 WHERE voucher_id = ?', [event.voucherId])
      return { kind: 'stored' }
    }
    if ((await this.#find(connection, event.orderId)) !== undefined) return { kind: 'stored' }
    // Its `placed` is still with another worker: the row is made here in its end state, and that one will find it.
    if (!isLive) {
      await this.#insert(connection, event, undefined, event.kind)
      return { kind: 'stored' }
    }
    const placed = await this.#place(connection, event)
    if (placed.kind === 'stored')
      await connection.query('UPDATE sale_orders SET state = ? WHERE order_id = ?', ['paid', event.orderId])
    return placed
  }

  async #insert(
    connection: SqlConnection,
    event: OrderEvent,
    liveNumber: number | undefined,
    state: string,
  ): Promise<boolean> {
    const columns = liveNumber === undefined ? orderColumns.filter((column) => column !== 'live_number') : orderColumns
    const values: Record<string, string | number> = {
      order_id: event.orderId,
      voucher_id: event.voucherId,
      user_id: event.userId,
      live_number: liveNumber ?? 0,
      number: event.number,
      state,
      placed_at: event.at,
      changed_at: event.at,
    }
    const sql = this.#database.insertIgnore('sale_orders', columns)
    const { changed } = await connection.query(
      sql,
      columns.map((column) => values[column]!),
    )
    return changed === 1
  }

  async get(orderId: string): Promise<StoredOrder | undefined> {
    return this.#database.transaction((connection) => this.#find(connection, orderId))
  }

  async #find(connection: SqlConnection, orderId: string): Promise<StoredOrder | undefined> {
    const { rows } = await connection.query('SELECT * FROM sale_orders WHERE order_id = ?', [orderId])
    const row = rows[0]
    if (row === undefined) return undefined
    return {
      orderId: String(row['order_id']),
      voucherId: String(row['voucher_id']),
      userId: String(row['user_id']),
      number: Number(row['number']),
      state: String(row['state']) as StoredOrder['state'],
      placedAt: Number(row['placed_at']),
      changedAt: Number(row['changed_at']),
    }
  }

  async count(voucherId: string): Promise<number> {
    return this.#database.transaction(async (connection) => {
      const { rows } = await connection.query(
        'SELECT COUNT(*) AS live FROM sale_orders WHERE voucher_id = ? AND live_number IS NOT NULL',
        [voucherId],
      )
      return Number(rows[0]?.['live'] ?? 0)
    })
  }

  close(): Promise<void> {
    return this.#database.close()
  }
}
