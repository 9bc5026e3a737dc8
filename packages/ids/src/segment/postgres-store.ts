import { inTime } from './in-time.ts'
import { inTransaction, readSchema, type SegmentStore, SqlSegmentStore } from './segment-store.ts'

/** What is used of a `pg` pool. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>
  end(): Promise<void>
}

interface PostgresConnection {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>
  release(destroy?: boolean): void
}

const uniqueViolation = '23505'

/** Segments in PostgreSQL, over a pool of the `pg` package. */
export function postgresSegmentStore(pool: PostgresPool, name = 'postgres', timeoutMs = 15_000): SegmentStore {
  return new SqlSegmentStore({
    name,
    schema: readSchema('postgres'),
    textType: 'TEXT',
    async transaction(statements) {
      const client = await inTime(pool.connect(), timeoutMs, `a connection to ${name}`, (late) => late.release())
      try {
        const all = inTransaction(statements, async (sql, values) => {
          let index = 0
          const numbered = sql.replaceAll('?', () => `$${++index}`)
          const { rows, rowCount } = await client.query(numbered, values)
          return { rows: rows as Record<string, unknown>[], changed: rowCount ?? 0 }
        })
        const results = await inTime(all, timeoutMs, `a transaction on ${name}`)
        client.release()
        return results
      } catch (error) {
        // Whatever went wrong, the server rolls back what a closed connection left open.
        client.release(true)
        throw error
      }
    },
    isDuplicate: (error) => (error as { code?: string }).code === uniqueViolation,
    close: () => pool.end(),
  })
}
