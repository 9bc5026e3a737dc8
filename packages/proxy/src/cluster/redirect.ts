/** What an error reply of a cluster node tells the asker to do. */
export type Redirect =
  | { readonly kind: 'moved' | 'ask'; readonly slot: number; readonly host: string; readonly port: number }
  | { readonly kind: 'later' }

const place = /^-(MOVED|ASK) (\d+) (.*):(\d+)\r\n/

/** Reads MOVED, ASK, TRYAGAIN and CLUSTERDOWN; undefined for an error that is the client's. */
export function redirectOf(reply: Uint8Array): Redirect | undefined {
  const text = Buffer.from(reply.buffer, reply.byteOffset, Math.min(reply.length, 300)).toString('latin1')
  const match = place.exec(text)
  if (match !== null) {
    const [, kind, slot, host, port] = match
    return { kind: kind === 'MOVED' ? 'moved' : 'ask', slot: Number(slot), host: host!, port: Number(port) }
  }
  if (/^-(TRYAGAIN|CLUSTERDOWN|LOADING|MASTERDOWN)\b/.test(text)) return { kind: 'later' }
  return undefined
}
