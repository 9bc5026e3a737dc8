import type { ProxyClient } from '../client/proxy-client.ts'
import type { ClientFilter } from './client-filter.ts'

/** What CLIENT LIST and CLIENT KILL know of a client. */
export interface ListedClient {
  /** Of the proxy, the same for the client's whole life; none of the server's. */
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
  /** It has a connection to Redis for itself, which the server lists. */
  readonly isKnownToServer: boolean
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
  }
}

/**
 * True where the filter is about a client. One that has a connection to Redis for itself is in the server's own list,
 * under another id and address: it is meant only where it is named by those that it has here.
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

/** A client as a line of CLIENT LIST. */
export function listLine(client: ListedClient): string {
  const { id, peer, local, name, user, type, database, version, ageMs, idleMs, unreadBytes } = client
  const times = `age=${Math.floor(ageMs / 1000)} idle=${Math.floor(idleMs / 1000)} flags=${type === 'pubsub' ? 'P' : 'N'}`
  const sizes = 'qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0'
  const state = `db=${database} sub=0 psub=0 ssub=0 multi=-1 ${sizes} omem=${unreadBytes} tot-mem=0`
  return `id=${id} addr=${peer} laddr=${local} fd=-1 name=${name} ${times} ${state} events=r cmd=NULL user=${user} redir=-1 resp=${version}\n`
}
