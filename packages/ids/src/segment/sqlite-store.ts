import { newPrivateFile } from '@firebreak/core/node'
import { IdsError } from '../errors.ts'
import { readSchema, type SegmentStore, type SqlResult, SqlSegmentStore, type SqlStatement } from './segment-store.ts'

const primaryKeyViolation = 1555

/** Segments in an SQLite file (`:memory:` for tests): the default, it needs no server; processes may share the file. */
export function sqliteSegmentStore(path: string): SegmentStore {
  // Required here, not imported: library packages also run on Node 20, where this module does not exist.
  const sqlite = process.getBuiltinModule?.('node:sqlite')
  if (sqlite === undefined) {
    const sentence = 'segments in SQLite need node:sqlite: use Node 22.13 or newer, or MariaDB or PostgreSQL'
    throw new IdsError('FB_IDS_DRIVER_MISSING', sentence, { driver: 'node:sqlite' })
  }
  if (path !== ':memory:') newPrivateFile(path)
  const database = new sqlite.DatabaseSync(path, { timeout: 5000 })
  database.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
  // No pause between BEGIN and COMMIT: waiting for another connection's lock blocks this thread, and would block
  // forever if that connection were in this process and in the middle of something.
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
    transaction: async (statements) => run(statements),
    isDuplicate: (error) => (error as { errcode?: number }).errcode === primaryKeyViolation,
    close: async () => database.close(),
  })
}
