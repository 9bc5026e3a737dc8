import { resolve } from 'node:path'
import { newPrivateFile, whenUnlocked } from '@firebreak/core/node'
import { OrderStoreError } from '../errors.ts'
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

/** How long another process may keep the file locked. */
const lockedMs = 10_000

const turns = new Map<string | symbol, Promise<unknown>>()
/** SQLITE_TOOBIG, SQLITE_CONSTRAINT, SQLITE_MISMATCH, SQLITE_RANGE. */
const entryFaults: ReadonlySet<number> = new Set([18, 19, 20, 25])

/** Orders in an SQLite file (`:memory:` for tests); the default, it needs no server. */
export async function sqliteOrderStore(path: string, options?: SqlOrderStoreOptions): Promise<OrderStore> {
  // Loaded here, not at the top: library packages also run on Node 20, where this module does not exist.
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (sqlite === undefined) {
    const sentence = 'orders in SQLite need node:sqlite: use Node 22.13 or newer, or MariaDB or PostgreSQL'
    throw new OrderStoreError('FB_SALE_STORE_DOWN', sentence)
  }
  if (path !== ':memory:') newPrivateFile(path)
  const database = new sqlite.DatabaseSync(path, { timeout: lockedMs })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0')
  const connection: SqlConnection = {
    async query(sql, values) {
      const statement = database.prepare(sql)
      if (/^\s*SELECT/i.test(sql)) return { rows: statement.all(...values) as SqlRow[], changed: 0 }
      return { rows: [], changed: Number(statement.run(...values).changes) }
    },
  }
  // Transactions of one process take turns by file, so that they never meet. Other processes are waited for in BEGIN.
  const turn = path === ':memory:' ? Symbol(path) : resolve(path)
  const sqlDatabase: SqlDatabase = {
    schema: async () => readSchema('sqlite'),
    insertIgnore: (table, columns) =>
      `INSERT OR IGNORE INTO ${table} (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`,
    forUpdate: '',
    faultOf: sqliteFault,
    transaction(work) {
      const run = async () => {
        await whenUnlocked(() => database.exec('BEGIN IMMEDIATE'), lockedMs, options?.runtime)
        try {
          const result = await work(connection)
          database.exec('COMMIT')
          return result
        } catch (error) {
          // Some errors (a full disk) have already rolled back.
          if (database.isTransaction) database.exec('ROLLBACK')
          throw error
        }
      }
      const result = (turns.get(turn) ?? Promise.resolve()).then(run)
      turns.set(
        turn,
        result.catch(() => {}),
      )
      return result
    },
    async close() {
      await turns.get(turn)
      database.close()
    },
  }
  return new SqlOrderStore(sqlDatabase, options)
}

function sqliteFault(error: unknown): SqlFault {
  // The low byte is the code; the higher bytes give its kind.
  const code = ((error as { errcode?: number }).errcode ?? 0) & 0xff
  return entryFaults.has(code) ? 'entry' : 'outage'
}
