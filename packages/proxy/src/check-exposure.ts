import { connect, isIP } from 'node:net'
import { connect as connectTls } from 'node:tls'
import { ProxyStartError } from './errors.ts'
import type { ResolvedProxyOptions } from './options.ts'
import type { ConnectTarget } from './transport/transport.ts'

const askMs = 5000

/**
 * Refuses to open a Redis to the whole network by accident, as Redis' own protected mode does. Beyond loopback somebody
 * must ask clients who they are: the proxy (users of its own, client certificates), or the Redis behind it, where it
 * answers an unauthenticated PING with NOAUTH and the proxy lends nobody the password of its `upstream`.
 */
export async function checkExposure(options: ResolvedProxyOptions): Promise<void> {
  const { host, path, users, tls, allowAnyone } = options
  if (allowAnyone || path !== undefined || isLoopback(host) || (users?.length ?? 0) > 0) return
  if (tls?.requestCert === true && tls.rejectUnauthorized !== false) return
  const reason = await whyOpen(options)
  if (reason === undefined) return
  throw new ProxyStartError(
    `the proxy would let everybody who reaches ${host} use the Redis behind it: ${reason}. Listen on 127.0.0.1, give it users (--user) or client certificates (--tls-ca), or say --allow-anyone`,
  )
}

/** Why the Redis behind keeps nobody out; undefined where it does. */
async function whyOpen({ identity, targets, mode }: ResolvedProxyOptions): Promise<string | undefined> {
  if (identity.password !== undefined) return 'it would lend them the password of its upstream'
  if (mode === 'sentinel') return 'it has no users, and what stands behind Sentinels is not known yet'
  const target = targets[0]!
  try {
    const reply = await ping(target)
    return reply.startsWith('-NOAUTH') ? undefined : 'Redis asks nobody for a password'
  } catch (error) {
    const place = target.path ?? `${target.host}:${target.port}`
    return `whether Redis at ${place} asks for a password could not be told (${(error as Error).message})`
  }
}

/** What a Redis answers to somebody who has shown no password. */
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
