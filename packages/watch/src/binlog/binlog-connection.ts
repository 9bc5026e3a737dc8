import type ZongJi from '@vlasky/zongji'
import { WatchError } from '../errors.ts'
import type { RowChange } from './key-refresh.ts'
import type { Row } from './row-mapping.ts'

/**
 * Where the database is, in the form that `mysql2` takes. The user needs REPLICATION SLAVE, REPLICATION CLIENT and
 * SELECT. Written out here so that applications without a database do not need the driver's types.
 */
export interface BinlogConnection {
  readonly host?: string
  readonly port?: number
  readonly user?: string
  readonly password?: string
  readonly database?: string
  readonly socketPath?: string
  /** The name of a `mysql2` TLS profile, or Node's TLS options. */
  readonly ssl?: string | BinlogTls
}

/** TLS options for a connection to a database. */
export interface BinlogTls {
  readonly ca?: string | string[]
  readonly cert?: string | string[]
  readonly key?: string | string[]
  readonly passphrase?: string
  readonly rejectUnauthorized?: boolean
  readonly verifyIdentity?: boolean
}

/** What a stream emits, in log order. */
export interface BinlogEvents {
  /** The tables whose rows we want, as `schema.table`. */
  readonly mappedTables: ReadonlyMap<string, unknown>
  onReady(): void
  onRows(changes: readonly RowChange[]): void
  onTableEmptied(table: string, reason: string): void
  /** A transaction or statement is complete; `gtidSet` is the position after it. */
  onCommit(gtidSet: string): void
  onError(error: Error): void
}

const connectTimeoutMs = 3000
const queryTimeoutMs = 3000
const emptied = /^\s*(?:\/\*.*?\*\/\s*)*(TRUNCATE(?:\s+TABLE)?|DROP\s+TABLE(?:\s+IF\s+EXISTS)?)\s+(.+)$/is

/** Row events have one shape for all three kinds; the rows of an update are pairs. */
interface RowsEvent {
  readonly tableId: number
  readonly tableMap: Record<number, { readonly parentSchema: string; readonly tableName: string } | undefined>
  readonly rows: readonly (Row & { readonly before?: Row; readonly after?: Row })[]
}

interface LogEvent {
  readonly gtid?: string
  readonly query?: string
  readonly schema?: string
  getEventName(): string
}

/** Opens a stream at a position; `stop` ends it without another event. */
export function openBinlog(
  connection: BinlogConnection,
  serverId: number,
  gtidSet: string,
  events: BinlogEvents,
): { stop(): void } {
  let zongji: ZongJi | undefined
  let isStopped = false
  const begin = async () => {
    const { default: Library } = await import('@vlasky/zongji')
    if (isStopped) return
    const stream = new Library({
      ...connection,
      supportBigNumbers: true,
      bigNumberStrings: true,
      dateStrings: true,
      connectTimeout: connectTimeoutMs,
    })
    zongji = stream
    stream.on('error', (error: Error) => {
      if (!isStopped) events.onError(error)
    })
    stream.on('ready', () => {
      if (!isStopped) events.onReady()
    })
    stream.on('binlog', (event: unknown) => {
      if (!isStopped) tell(stream, event as LogEvent, events)
    })
    // A server that goes away closes the socket without an error.
    stream.on('stopped', () => {
      if (!isStopped) events.onError(new WatchError('FB_WATCH_BINLOG', 'the database closed the binlog connection'))
    })
    await stream.start({
      serverId,
      gtidSet,
      includeEvents: [
        'tablemap',
        'writerows',
        'updaterows',
        'deleterows',
        'query',
        'xid',
        'gtid',
        'mariadbgtid',
        'rotate',
      ],
    })
    const socket = (stream as unknown as { connection?: { stream?: NodeJS.EventEmitter } }).connection?.stream
    socket?.on('close', () => {
      if (!isStopped) events.onError(new WatchError('FB_WATCH_BINLOG', 'the database closed the binlog connection'))
    })
  }
  begin().catch((error: Error) => {
    if (!isStopped) events.onError(error)
  })
  return {
    stop() {
      if (isStopped) return
      isStopped = true
      zongji?.stop()
    },
  }
}

function tell(stream: ZongJi, event: LogEvent, events: BinlogEvents): void {
  switch (event.getEventName()) {
    case 'writerows':
    case 'updaterows':
    case 'deleterows':
      events.onRows(rowChanges(event.getEventName(), event as unknown as RowsEvent, events.mappedTables))
      return
    case 'xid':
      events.onCommit(positionOf(stream))
      return
    case 'query':
      tellStatement(stream, event, events)
      return
    case 'gtid':
    case 'mariadbgtid':
      // A standalone statement (DDL) has no end marker: the start of the next transaction shows that it is complete.
      events.onCommit(positionOf(stream))
      return
  }
}

function tellStatement(stream: ZongJi, event: LogEvent, events: BinlogEvents): void {
  const statement = event.query ?? ''
  const match = statement.match(emptied)
  if (match !== null) {
    for (const name of tableNames(match[2]!, event.schema ?? '')) {
      if (events.mappedTables.has(name)) events.onTableEmptied(name, `${match[1]!.toUpperCase()} ${name}`)
    }
  }
  // Nothing else may follow for a long time, and readers must not wait for it: report at once what a statement emptied.
  if (match !== null || /^\s*(COMMIT|ROLLBACK)\b/i.test(statement)) events.onCommit(positionOf(stream))
}

function tableNames(list: string, schema: string): string[] {
  return list
    .replace(/;?\s*(\/\*.*)?$/s, '')
    .split(',')
    .map((name) => name.trim().split(/\s+/)[0]!.replaceAll('`', ''))
    .map((name) => (name.includes('.') ? name : `${schema}.${name}`))
}

function rowChanges(kind: string, event: RowsEvent, wanted: ReadonlyMap<string, unknown>): RowChange[] {
  const map = event.tableMap[event.tableId]
  if (map === undefined) return []
  const table = `${map.parentSchema}.${map.tableName}`
  if (!wanted.has(table)) return []
  return event.rows.map((row) => {
    if (kind === 'updaterows') return { table, before: row.before, after: row.after }
    return kind === 'writerows' ? { table, before: undefined, after: row } : { table, before: row, after: undefined }
  })
}

function positionOf(stream: ZongJi): string {
  return stream.gtidSet ?? ''
}

/** The current end of the server's binlog. */
export async function readServerPosition(connection: BinlogConnection): Promise<string> {
  const { createConnection } = await import('mysql2/promise')
  const client = await createConnection({ ...connection, connectTimeout: connectTimeoutMs })
  client.on('error', () => {})
  try {
    const ask = async (sql: string) => {
      const [rows] = await client.query({ sql, timeout: queryTimeoutMs })
      return Object.values((rows as Record<string, unknown>[])[0] ?? {})[0]
    }
    const isMariadb = /mariadb/i.test(String(await ask('SELECT VERSION()')))
    return String(
      await ask(isMariadb ? 'SELECT @@GLOBAL.gtid_current_pos' : 'SELECT @@GLOBAL.gtid_executed'),
    ).replaceAll(/\s/g, '')
  } finally {
    client.destroy()
  }
}
