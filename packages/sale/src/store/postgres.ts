import { type PostgresPool, postgresConnections } from '@firebreak/ids'
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

/** Orders in PostgreSQL, over a pool of the `pg` package. */
export function postgresOrderStore(pool: PostgresPool, options?: SqlOrderStoreOptions): OrderStore {
  const connect = postgresConnections(pool)
  const database: SqlDatabase = {
    schema: async () => readSchema('postgres'),
    forUpdate: ' FOR UPDATE',
    faultOf: postgresFault,
    insertIgnore: (table, columns) =>
      `INSERT INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')}) ON CONFLICT DO NOTHING`,
    async transaction(work) {
      const client = await connect()
      let isBroken = false
      const connection: SqlConnection = {
        async query(sql, values) {
          let index = 0
          const { rows, rowCount } = await client.query(
            sql.replaceAll('?', () => `$${++index}`),
            [...values],
          )
          return { rows: rows as SqlRow[], changed: rowCount ?? 0 }
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
        client.release(isBroken)
      }
    },
    close: () => pool.end(),
  }
  return new SqlOrderStore(database, options)
}

/** By SQLSTATE: 40 is a conflict; 22 (data) and 23 (constraints) are the entry's fault. */
function postgresFault(error: unknown): SqlFault {
  const { code = '' } = error as { code?: string }
  if (/^40[0-9A-Z]{3}$/.test(code)) return 'conflict'
  return /^2[23][0-9A-Z]{3}$/.test(code) ? 'entry' : 'outage'
}
