import { newPrivateFile, whenUnlocked } from '@firebreak/core/node'
import { IdsError } from '../errors.ts'
import { readSchema, type SegmentStore, type SqlResult, SqlSegmentStore, type SqlStatement } from './segment-store.ts'

const primaryKeyViolation = 1555
/** How long another process may keep the file locked. */
const lockedMs = 5000

/** Segments in an SQLite file (`:memory:` for tests): the default, it needs no server; processes may share the file. */
export function sqliteSegmentStore(path: string): SegmentStore {
  // Required here, not imported: library packages also run on Node 20, where this module does not exist.
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (sqlite === undefined) {
    const sentence = 'segments in SQLite need node:sqlite: use Node 22.13 or newer, or MariaDB or PostgreSQL'
    throw new IdsError('FB_IDS_DRIVER_MISSING', sentence, { driver: 'node:sqlite' })
  }
  if (path !== ':memory:') newPrivateFile(path)
  const database = new sqlite.DatabaseSync(path, { timeout: lockedMs })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA busy_timeout = 0')
  // No pause between BEGIN and COMMIT, so that transactions of one process never meet.
  const run = (statements: readonly SqlStatement[]): SqlResult[] => {
    database.exec('BEGIN IMMEDIATE')
    try {
      const results = statements.map(({ sql, values }) => {
        const statement = database.prepare(sql)
        // A JavaScript number would be bound as a float, and a sum with it is rounded.
        const bound = values.map((value) => (typeof value === 'number' ? BigInt(value) : value))
        if (/^\s*SELECT/i.test(sql)) return { rows: statement.all(...bound), changed: 0 }
        return { rows: [], changed: Number(statement.run(...bound).changes) }
      })
      database.exec('COMMIT')
      return results
    } catch (error) {
      if (database.isTransaction) database.exec('ROLLBACK')
      throw error
    }
  }
  return new SqlSegmentStore({
    name: `sqlite ${path}`,
    schema: readSchema('sqlite'),
    textType: 'TEXT',
    transaction: (statements) => whenUnlocked(() => run(statements), lockedMs),
    isDuplicate: (error) => (error as { errcode?: number }).errcode === primaryKeyViolation,
    close: async () => database.close(),
  })
}
