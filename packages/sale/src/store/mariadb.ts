import type { MariadbPool } from '@firebreak/ids'
import type { OrderStore } from './order-store.ts'
import { readSchema } from './schema.ts'
import {
  type SqlConnection,
  type SqlDatabase,
  type SqlFault,
  SqlOrderStore,
  type SqlOrderStoreOptions,
  type SqlRow,
} from './sql-order-store.ts'

/** Lock wait timeout, deadlock, "record has changed since last read". */
const conflicts: ReadonlySet<number> = new Set([1205, 1213, 1020])
/** Wrong values that some versions report outside of the classes 22 and 23: truncated data, an incorrect string. */
const entryFaults: ReadonlySet<number> = new Set([1265, 1366])
/** Binary and without padding, so that a trailing blank distinguishes two ids: MariaDB's name for it, and MySQL's. */
const collations = ['utf8mb4_nopad_bin', 'utf8mb4_0900_bin']

/** Orders in MariaDB or MySQL, over a pool of `mysql2/promise`. */
export function mariadbOrderStore(pool: MariadbPool, options?: SqlOrderStoreOptions): OrderStore {
  const database: SqlDatabase = {
    async schema(connection) {
      const found = await connection.query(
        'SELECT COLLATION_NAME AS name FROM information_schema.COLLATIONS WHERE COLLATION_NAME IN (?, ?)',
        collations,
      )
      const collation = String(found.rows[0]?.['name'] ?? collations[0])
      return readSchema('mariadb').map((statement) => statement.replaceAll('utf8mb4_nopad_bin', collation))
    },
    forUpdate: ' FOR UPDATE',
    faultOf: mariadbFault,
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
  }
  return new SqlOrderStore(database, options)
}

function mariadbFault(error: unknown): SqlFault {
  const { errno = 0, sqlState = '' } = error as { errno?: number; sqlState?: string }
  if (conflicts.has(errno)) return 'conflict'
  return entryFaults.has(errno) || /^2[23]/.test(sqlState) ? 'entry' : 'outage'
}
