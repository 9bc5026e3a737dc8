import type { Session } from './session.ts'

/** What CLIENT LIST tells of a client beside its session. */
export interface ListedClient {
  readonly session: Session
  readonly peer: string
  readonly ageMs: number
  readonly idleMs: number
  readonly unreadBytes: number
}

/** A client without a connection of its own as a line of CLIENT LIST. Its id is none of the server's. */
export function listLine({ session, peer, ageMs, idleMs, unreadBytes }: ListedClient): string {
  const { name, database, version, username } = session
  const times = `age=${Math.floor(ageMs / 1000)} idle=${Math.floor(idleMs / 1000)}`
  const sizes = 'qbuf=0 qbuf-free=0 argv-mem=0 multi-mem=0 rbs=0 rbp=0 obl=0 oll=0'
  const state = `flags=N db=${database} sub=0 psub=0 ssub=0 multi=-1 ${sizes} omem=${unreadBytes} tot-mem=0`
  return `id=0 addr=${peer} laddr= fd=-1 name=${name} ${times} ${state} events=r cmd=NULL user=${username} redir=-1 resp=${version}\n`
}
