/** What is used of a `pg` pool. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>
  end(): Promise<void>
  on?(event: 'error', listener: (error: Error) => void): unknown
}

/** What is used of one of its clients. */
export interface PostgresConnection {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>
  release(destroy?: boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
}

const ignore = () => {}

/**
 * Connections of a pool that may be lost at any moment. `pg` emits what ended a connection: for an idle one on the pool,
 * for one that is taken on the client, beside the failure of its query. Without a listener either ends the process, which
 * a database that restarts must not do.
 */
export function postgresConnections(pool: PostgresPool): () => Promise<PostgresConnection> {
  pool.on?.('error', ignore)
  const known = new WeakSet<PostgresConnection>()
  return async () => {
    const client = await pool.connect()
    if (!known.has(client)) client.on?.('error', ignore)
    known.add(client)
    return client
  }
}
