import type { OrderStore } from './order-store.ts'
import { readSchema } from './schema.ts'
import { type SqlConnection, SqlOrderStore, type SqlRow } from './sql-order-store.ts'

/** What is used of a `mysql2/promise` pool. */
export interface MariadbPool {
  getConnection(): Promise<MariadbConnection>
  end(): Promise<void>
}

interface MariadbConnection {
  query(sql: string, values?: unknown[]): Promise<[unknown, unknown]>
  release(): void
  destroy(): void
}

/** Orders in MariaDB or MySQL, over a pool of `mysql2/promise`. */
export function mariadbOrderStore(pool: MariadbPool): OrderStore {
  return new SqlOrderStore({
    schema: readSchema('mariadb'),
    insertIgnore: (table, columns) =>
      `INSERT IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    async transaction(work) {
      const client = await pool.getConnection()
      let isBroken = false
      const connection: SqlConnection = {
        async query(sql, values) {
          const [result] = await client.query(sql, [...values])
          if (Array.isArray(result)) return { rows: result as SqlRow[], changed: 0 }
          return { rows: [], changed: (result as { affectedRows: number }).affectedRows }
        },
      }
      try {
        await client.query('BEGIN')
        const result = await work(connection)
        await client.query('COMMIT')
        return result
      } catch (error) {
        await client.query('ROLLBACK').catch(() => {
          isBroken = true
        })
        throw error
      } finally {
        if (isBroken) client.destroy()
        else client.release()
      }
    },
    close: () => pool.end(),
  })
}
