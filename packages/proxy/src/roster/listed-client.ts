import type { ProxyClient } from '../client/proxy-client.ts'
import type { ClientFilter, RosterRow } from './client-filter.ts'

/** What CLIENT LIST and CLIENT KILL know about a client. */
export interface ListedClient {
  /** Assigned by the proxy for the client's whole life; never one of the server's. */
  readonly id: number
  readonly peer: string
  readonly local: string
  readonly name: string
  readonly user: string
  readonly type: 'normal' | 'pubsub'
  readonly database: number
  readonly version: 2 | 3
  readonly ageMs: number
  readonly idleMs: number
  readonly unreadBytes: number
  /** It has a dedicated connection to Redis, which the server lists. */
  readonly isKnownToServer: boolean
  /** That connection's address as the server sees it, if there is one. */
  readonly connectionAddress: string | undefined
  /** What that connection's row shows instead of the fields of the connection alone. */
  readonly fields: Readonly<Record<string, string>>
}

/** A client as it is now. */
export function listedClient(client: ProxyClient): ListedClient {
  const { id, session, own, host } = client
  const { peer, local } = client.transport
  const { name, user, database, version } = session
  return {
    id,
    peer,
    local,
    name,
    user,
    type: own.pinned?.isSubscribed === true ? 'pubsub' : 'normal',
    database,
    version,
    ageMs: host.turn.nowMs - client.sinceMs,
    idleMs: host.turn.nowMs - client.lastActiveMs,
    unreadBytes: client.backlog.bytes,
    isKnownToServer: own.pinned !== undefined,
    connectionAddress: own.pinned?.connection.localAddress,
    fields: rowFields(client),
  }
}

/**
 * True if the filter matches a client. One that has a dedicated connection to Redis is in the server's own list, under
 * another id and address: it matches only if it is named by those that it has here.
 */
export function isMeant(client: ListedClient, filter: ClientFilter): boolean {
  const { ids, address, localAddress, user, type, maxAgeSeconds } = filter
  const isNamed = ids !== undefined || address !== undefined || localAddress !== undefined
  if (client.isKnownToServer && !isNamed) return false
  return (
    (ids === undefined || ids.includes(client.id)) &&
    (address === undefined || address === client.peer) &&
    (localAddress === undefined || localAddress === client.local) &&
    (user === undefined || user === client.user) &&
    (type === undefined || type.toLowerCase() === client.type) &&
    (maxAgeSeconds === undefined || client.ageMs >= maxAgeSeconds * 1000)
  )
}

/** A client in CLIENT LIST; undefined if it is not in it. */
export function rowOf(listed: ListedClient, filter: ClientFilter): RosterRow | undefined {
  const { fields, connectionAddress } = listed
  const line = isMeant({ ...listed, isKnownToServer: false }, filter) ? listLine(listed) : undefined
  return line === undefined && connectionAddress === undefined ? undefined : { connectionAddress, fields, line }
}

/** The client's own fields in the row of its dedicated connection; everything else comes from the server. */
export function rowFields({ id, own, session, transport, host, sinceMs }: ProxyClient): Record<string, string> {
  return {
    id: String(own.pinned?.serverId ?? id),
    addr: transport.peer,
    laddr: transport.local,
    age: String(Math.floor((host.turn.nowMs - sinceMs) / 1000)),
    ...(session.username !== undefined && { user: session.username }),
  }
}

/** A row of the server with some fields replaced. */
export function rowWith(row: string, fields: Readonly<Record<string, string>>): string {
  return row.replace(/(^| )([a-z-]+)=[^ ]*/g, (field, gap: string, name: string) =>
    fields[name] === undefined ? field : `${gap}${name}=${fields[name]}`,
  )
}

/** A client as a line of CLIENT LIST. */
function listLine(client: ListedClient): string {
  const { id, peer, local, name, user, type, database, version, ageMs, idleMs, unreadBytes } = client
  const times = `age=${Math.floor(ageMs / 1000)} idle=${Math.floor(idleMs / 1000)} flags=${type === 'pubsub' ? 'P' : 'N'}`
  const sizes = 'qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0'
  const state = `db=${database} sub=0 psub=0 ssub=0 multi=-1 ${sizes} omem=${unreadBytes} tot-mem=0`
  return `id=${id} addr=${peer} laddr=${local} fd=-1 name=${name} ${times} ${state} events=r cmd=NULL user=${user} redir=-1 resp=${version}\n`
}
