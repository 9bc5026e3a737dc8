import { type Runtime, systemRuntime } from '@firebreak/core'
import { inTime } from '../time/in-time.ts'
import { type PostgresPool, postgresConnections } from './postgres-connections.ts'
import { inTransaction, readSchema, type SegmentStore, SqlSegmentStore } from './segment-store.ts'

const uniqueViolation = '23505'

/** Segments in PostgreSQL, over a pool of the `pg` package. */
export function postgresSegmentStore(
  pool: PostgresPool,
  name = 'postgres',
  timeoutMs = 15_000,
  runtime: Runtime = systemRuntime,
): SegmentStore {
  const within = <T>(work: Promise<T>, what: string, onLate?: (value: T) => void) =>
    inTime(work, runtime.timers, timeoutMs, `${what} ${name} took longer than ${timeoutMs} ms`, onLate)
  const connect = postgresConnections(pool)
  return new SqlSegmentStore({
    name,
    schema: readSchema('postgres'),
    textType: 'TEXT',
    async transaction(statements) {
      const client = await within(connect(), 'a connection to', (late) => late.release())
      try {
        const all = inTransaction(statements, async (sql, values) => {
          let index = 0
          const numbered = sql.replaceAll('?', () => `$${++index}`)
          const { rows, rowCount } = await client.query(numbered, values)
          return { rows: rows as Record<string, unknown>[], changed: rowCount ?? 0 }
        })
        const results = await within(all, 'a transaction on')
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
