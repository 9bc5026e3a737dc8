import { type Runtime, systemRuntime } from '@firebreak/core'
import { inTime } from '../time/in-time.ts'
import { inTransaction, readSchema, type SegmentStore, SqlSegmentStore } from './segment-store.ts'

/** The part of a `mysql2/promise` pool that is used. */
export interface MariadbPool {
  getConnection(): Promise<MariadbConnection>
  end(): Promise<void>
}

interface MariadbConnection {
  query(sql: string, values?: unknown[]): Promise<[unknown, unknown]>
  release(): void
  destroy(): void
}

const duplicateEntry = 1062

/** Segments in MariaDB or MySQL, over a pool of `mysql2/promise`; its number options do not matter. */
export function mariadbSegmentStore(
  pool: MariadbPool,
  name = 'mariadb',
  timeoutMs = 15_000,
  runtime: Runtime = systemRuntime,
): SegmentStore {
  const within = <T>(work: Promise<T>, what: string, onLate?: (value: T) => void) =>
    inTime(work, runtime.timers, timeoutMs, `${what} ${name} took longer than ${timeoutMs} ms`, onLate)
  return new SqlSegmentStore({
    name,
    schema: readSchema('mariadb'),
    textType: 'CHAR',
    async transaction(statements) {
      const opening = pool.getConnection()
      const connection = await within(opening, 'a connection to', (late) => late.release())
      try {
        const all = inTransaction(statements, async (sql, values) => {
          const [answer] = await connection.query(sql, values)
          if (Array.isArray(answer)) return { rows: answer as Record<string, unknown>[], changed: 0 }
          return { rows: [], changed: (answer as { affectedRows: number }).affectedRows }
        })
        const results = await within(all, 'a transaction on')
        connection.release()
        return results
      } catch (error) {
        // Whatever went wrong, the server rolls back what a closed connection left open.
        connection.destroy()
        throw error
      }
    },
    isDuplicate: (error) => (error as { errno?: number }).errno === duplicateEntry,
    close: () => pool.end(),
  })
}
