import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { ProxyStartError } from './errors.ts'
import type { ResolvedProxyOptions } from './options.ts'
import type { ConnectTarget } from './transport/transport.ts'

const askMs = 5000

/**
 * Refuses to expose a Redis to the whole network by accident, like Redis' own protected mode. Beyond loopback somebody
 * must authenticate clients: the proxy (its own users, client certificates), or the Redis behind it, provided that it
 * answers an unauthenticated PING with NOAUTH and the proxy does not lend the password of its `upstream`.
 */
export async function checkExposure(options: ResolvedProxyOptions): Promise<void> {
  const { host, path, users, tls, allowAnyone } = options
  if (allowAnyone || path !== undefined || isLoopback(host) || (users?.length ?? 0) > 0) return
  if (tls?.requestCert === true && tls.rejectUnauthorized !== false) return
  const reason = await whyOpen(options)
  if (reason === undefined) return
  throw new ProxyStartError(
    `the proxy would let anyone who can reach ${host} use the Redis behind it: ${reason}. Listen on 127.0.0.1, configure users (--user) or client certificates (--tls-ca), or pass --allow-anyone`,
  )
}

/** Why Redis does not keep strangers out; undefined if it does. */
async function whyOpen({ identity, targets, mode }: ResolvedProxyOptions): Promise<string | undefined> {
  if (identity.password !== undefined) return 'it would use the password of its upstream for them'
  if (mode === 'sentinel') return 'it has no users, and the master behind the Sentinels is not known yet'
  const target = targets[0]!
  try {
    const reply = await ping(target)
    return reply.startsWith('-NOAUTH') ? undefined : 'Redis requires no password'
  } catch (error) {
    const place = target.path ?? `${target.host}:${target.port}`
    return `could not find out whether Redis at ${place} requires a password (${(error as Error).message})`
  }
}

/** How a Redis answers an unauthenticated PING. */
function ping({ host, port, path, tls }: ConnectTarget): Promise<string> {
  const place = path === undefined ? { host, port } : { path }
  const socket =
    tls === undefined ? connect(place) : connectTls({ ...place, ...(isIP(host) === 0 && { servername: host }), ...tls })
  return new Promise((resolve, reject) => {
    let reply = ''
    socket.on('data', (chunk) => {
      reply += chunk.toString('latin1')
      if (reply.includes('\n')) resolve(reply)
    })
    socket.on('error', reject)
    socket.on('close', () => reject(new Error('the connection was closed')))
    socket.setTimeout(askMs, () => socket.destroy(new Error(`no answer within ${askMs} ms`)))
    socket.write('PING\r\n')
  }).finally(() => socket.destroy()) as Promise<string>
}

function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIP(host) === 4 && host.startsWith('127.'))
}
