import type { OrderStore } from './order-store.ts'
import { readSchema } from './schema.ts'
import { type SqlConnection, type SqlDatabase, SqlOrderStore, type SqlRow } from './sql-order-store.ts'

/** Orders in an SQLite file (`:memory:` for tests); the default, it needs no server. */
export async function sqliteOrderStore(path: string): Promise<OrderStore> {
  // Loaded here and not at the top: library packages run on Node 20 too, where this module does not exist.
  const { DatabaseSync } = await import('node:sqlite')
  const database = new DatabaseSync(path, { timeout: 10_000 })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  const connection: SqlConnection = {
    async query(sql, values) {
      const statement = database.prepare(sql)
      if (/^\s*SELECT/i.test(sql)) return { rows: statement.all(...values) as SqlRow[], changed: 0 }
      return { rows: [], changed: Number(statement.run(...values).changes) }
    },
  }
  // One connection: transactions wait for each other here, and for other processes in BEGIN IMMEDIATE.
  let last: Promise<unknown> = Promise.resolve()
  const sqlDatabase: SqlDatabase = {
    schema: readSchema('sqlite'),
    insertIgnore: (table, columns) =>
      `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    transaction(work) {
      const run = async () => {
        database.exec('BEGIN IMMEDIATE')
        try {
          const result = await work(connection)
          database.exec('COMMIT')
          return result
        } catch (error) {
          database.exec('ROLLBACK')
          throw error
        }
      }
      const result = last.then(run, run)
      last = result.catch(() => {})
      return result
    },
    async close() {
      await last
      database.close()
    },
  }
  return new SqlOrderStore(sqlDatabase)
}
