/** What an error reply of a cluster node asks for. */
export type Redirect =
  | { readonly kind: 'moved' | 'ask'; readonly slot: number; readonly host: string; readonly port: number }
  | { readonly kind: 'later' }

const place = /^-(MOVED|ASK) (\d+) (.*):(\d+)\r\n/

/**
 * Parses MOVED, ASK, and errors of a node that is not, or not yet, what it was taken for (TRYAGAIN, CLUSTERDOWN,
 * LOADING, READONLY of a demoted master); undefined for an error that is for the client. After any of them, nothing was
 * carried out.
 */
export function redirectOf(reply: Uint8Array): Redirect | undefined {
  const text = Buffer.from(reply.buffer, reply.byteOffset, Math.min(reply.length, 300)).toString('latin1')
  const match = place.exec(text)
  if (match !== null) {
    const [, kind, slot, host, port] = match
    return { kind: kind === 'MOVED' ? 'moved' : 'ask', slot: Number(slot), host: host!, port: Number(port) }
  }
  if (/^-(TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN|READONLY)\b/.test(text)) return { kind: 'later' }
  return undefined
}
