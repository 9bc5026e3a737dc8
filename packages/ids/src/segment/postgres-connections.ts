/** The part of a `pg` pool that is used. */
export interface PostgresPool {
  connect(): Promise<PostgresConnection>
  end(): Promise<void>
  on?(event: 'error', listener: (error: Error) => void): unknown
}

/** The part of its clients that is used. */
export interface PostgresConnection {
  query(sql: string, values?: unknown[]): Promise<{ rows: unknown[]; rowCount: number | null }>
  release(destroy?: boolean): void
  on?(event: 'error', listener: (error: Error) => void): unknown
}

const ignore = () => {}

/**
 * Connections of a pool that may be lost at any moment. `pg` emits the error that ended a connection: for an idle one
 * on the pool, for one in use on the client, in addition to its query's failure. Without a listener either ends the
 * process, which a restarting database must not cause.
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
