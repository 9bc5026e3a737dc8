import type ZongJi from '@vlasky/zongji'
import type { ConnectionOptions } from 'mysql2'
import { WatchError } from '../errors.ts'
import type { RowChange } from './key-refresh.ts'
import type { Row } from './row-mapping.ts'

/** Where the database is, as `mysql2` takes it. Its user needs REPLICATION SLAVE, REPLICATION CLIENT and SELECT. */
export type BinlogConnection = Pick<
  ConnectionOptions,
  'host' | 'port' | 'user' | 'password' | 'database' | 'ssl' | 'socketPath'
>

/** What a stream tells, in the order of the log. */
export interface BinlogEvents {
  /** The tables whose rows are wanted, `schema.table`. */
  readonly mappedTables: ReadonlyMap<string, unknown>
  onReady(): void
  onRows(changes: readonly RowChange[]): void
  onTableEmptied(table: string, reason: string): void
  /** A transaction or statement is complete; the position behind it. */
  onCommit(gtidSet: string): void
  onError(error: Error): void
}

const connectTimeoutMs = 3000
const queryTimeoutMs = 3000
const emptied = /^\s*(?:\/\*.*?\*\/\s*)*(TRUNCATE(?:\s+TABLE)?|DROP\s+TABLE(?:\s+IF\s+EXISTS)?)\s+(.+)$/is

/** The row events have one shape for all three kinds; an update's rows are pairs. */
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

/** Opens a stream behind a position; `stop` ends it without another event. */
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
    // A server that goes away ends the socket without an error.
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
      // A statement of its own (DDL) has no end mark: the next transaction's beginning shows that it is complete.
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
  // Nothing else may follow for long, and readers must not wait for it: what a statement emptied is told at once.
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

/** Where the server's binlog ends now. */
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
