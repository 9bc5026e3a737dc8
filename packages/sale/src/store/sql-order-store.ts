import { type Runtime, systemRuntime } from '@firebreak/core'
import { OrderStoreError } from '../errors.ts'
import { OrderBatch, orderOf } from './order-batch.ts'
import { eventTrouble, type OrderEvent, type OrderStore, type StoredOrder, type StoreResult } from './order-store.ts'

/** One row as returned by the drivers: numbers may be text. */
export type SqlRow = Readonly<Record<string, unknown>>

/** What the store needs from a database: statements with `?` in a transaction on one connection. */
export interface SqlConnection {
  /** Runs a statement; returns the rows of a SELECT, and how many rows an INSERT or UPDATE changed. */
  query(sql: string, values: readonly (string | number)[]): Promise<{ rows: readonly SqlRow[]; changed: number }>
}

/**
 * Who is to blame for an error.
 * - `entry`: what was to be stored; it will fail again.
 * - `conflict`: two transactions were in each other's way; the same again works.
 * - `outage`: the database, its network, its disk, its rights, or something nobody thought of. Never the entry's fault.
 */
export type SqlFault = 'entry' | 'conflict' | 'outage'

/** A database with its dialect. */
export interface SqlDatabase {
  /** Statements that create the tables, or migrate them. */
  schema(connection: SqlConnection): Promise<readonly string[]>
  /** `INSERT` that does nothing on a duplicate of the primary key or a unique index. */
  insertIgnore(table: string, columns: readonly string[]): string
  /** What makes a SELECT lock its rows. */
  readonly forUpdate: '' | ' FOR UPDATE'
  faultOf(error: unknown): SqlFault
  /** Runs `work` in one transaction; a throw rolls it back. */
  transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T>
  close(): Promise<void>
}

/** Options of a store's factory, besides its pool. */
export interface SqlOrderStoreOptions {
  /** @default the system's */
  readonly runtime?: Runtime
}

/** How many times two conflicting transactions are retried. */
const maxTries = 10

/**
 * Orders in an SQL database.
 *
 * `live_number` is the order's number among its user's, and NULL once the order was taken back. So the unique index on
 * (voucher, user, live_number) forbids a second live order with the same number: NULLs never collide. Totals and limits
 * are decided by `OrderBatch` under the lock of the voucher's row.
 */
export class SqlOrderStore implements OrderStore {
  readonly #database: SqlDatabase
  readonly #runtime: Runtime

  constructor(database: SqlDatabase, options: SqlOrderStoreOptions = {}) {
    this.#database = database
    this.#runtime = options.runtime ?? systemRuntime
  }

  async migrate(): Promise<void> {
    await this.#transaction(async (connection) => {
      for (const statement of await this.#database.schema(connection)) await connection.query(statement, [])
    })
  }

  async setTotal(voucherId: string, total: number): Promise<void> {
    await this.#transaction(async (connection) => {
      const insert = this.#database.insertIgnore('sale_vouchers', ['voucher_id', 'total', 'live'])
      await connection.query(insert, [voucherId, total, 0])
      // Never lower: orders under a higher total may already be stored, with earlier ones still to come.
      const raise = 'UPDATE sale_vouchers SET total = ? WHERE voucher_id = ? AND total < ?'
      await connection.query(raise, [total, voucherId, total])
    })
  }

  store(events: readonly OrderEvent[]): Promise<StoreResult[]> {
    const troubles = events.map(eventTrouble)
    const sound = events.filter((_, index) => troubles[index] === undefined)
    return this.#transaction(async (connection) => {
      const batch = sound.length === 0 ? undefined : await OrderBatch.open(this.#database, connection, sound)
      const results: StoreResult[] = []
      const waiting = new Set<string>()
      for (const [index, event] of events.entries()) {
        // Behind an event without room, the user's later ones wait too: they are stored in order or not at all.
        const user = `${event.voucherId} ${event.userId}`
        const reason =
          troubles[index] ??
          (waiting.has(user) ? `an earlier event of user ${event.userId} is not stored yet` : undefined)
        const result: StoreResult = reason === undefined ? await batch!.apply(event) : { kind: 'rejected', reason }
        if (result.kind === 'rejected') waiting.add(user)
        results.push(result)
      }
      await batch?.finish()
      return results
    })
  }

  get(orderId: string): Promise<StoredOrder | undefined> {
    return this.#transaction(async (connection) => {
      const { rows } = await connection.query('SELECT * FROM sale_orders WHERE order_id = ?', [orderId])
      return rows[0] === undefined ? undefined : orderOf(rows[0])
    })
  }

  count(voucherId: string): Promise<number> {
    return this.#transaction(async (connection) => {
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

  async #transaction<T>(work: (connection: SqlConnection) => Promise<T>): Promise<T> {
    for (let tries = 1; ; tries++) {
      try {
        return await this.#database.transaction(work)
      } catch (error) {
        const fault = this.#database.faultOf(error)
        if (fault !== 'conflict' || tries === maxTries) throw storeError(fault, error)
        const pauseMs = this.#runtime.random() * tries * 10
        await new Promise<void>((resolve) => void this.#runtime.timers.setTimeout(resolve, pauseMs))
      }
    }
  }
}

function storeError(fault: SqlFault, cause: unknown): OrderStoreError {
  const message = cause instanceof Error ? cause.message || cause.name : String(cause)
  return fault === 'entry'
    ? new OrderStoreError('FB_SALE_STORE', message, { cause })
    : new OrderStoreError('FB_SALE_STORE_DOWN', `the order store is down: ${message}`, { cause })
}
