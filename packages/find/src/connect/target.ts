import { FindError } from '../errors.ts'

/** Where a server is and how to get in. */
export interface RedisTarget {
  /** @default '127.0.0.1' */
  readonly host?: string
  /** @default 6379 */
  readonly port?: number
  /** A Unix socket instead of host and port. */
  readonly socketPath?: string
  readonly username?: string
  readonly password?: string
  /** @default 0 */
  readonly database?: number
  /** TLS; true takes the system's certificates. */
  readonly tls?: boolean | TlsOptions
  /** @default 5000 */
  readonly connectTimeoutMs?: number
}

/** Certificates, as PEM. */
export interface TlsOptions {
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
  /** The name that the server's certificate must have. @default the host */
  readonly serverName?: string
  /** @default true */
  readonly isVerified?: boolean
}

export const defaultPort = 6379

/** A target from `redis://user:password@host:port/db`, `rediss://…` (TLS) or `unix:///path?db=1`. */
export function parseTarget(url: string): RedisTarget {
  let parsed: URL
  try {
    parsed = new URL(url)
  } catch {
    throw new FindError('FB_FIND_TARGET', `"${maskUrl(url)}" is no address of a Redis; write redis://host:port`)
  }
  const credentials = {
    ...(parsed.username === '' ? {} : { username: decodeURIComponent(parsed.username) }),
    ...(parsed.password === '' ? {} : { password: decodeURIComponent(parsed.password) }),
  }
  if (parsed.protocol === 'unix:' || parsed.protocol === 'redis+unix:') {
    const database = parsed.searchParams.get('db')
    return {
      socketPath: decodeURIComponent(parsed.pathname),
      ...credentials,
      ...(database === null ? {} : { database: databaseOf(database) }),
    }
  }
  if (parsed.protocol !== 'redis:' && parsed.protocol !== 'rediss:') {
    throw new FindError(
      'FB_FIND_TARGET',
      `"${maskUrl(url)}" begins with ${parsed.protocol}//; redis://, rediss:// and unix:// are known`,
    )
  }
  const path = parsed.pathname.replace(/^\//, '')
  return {
    host: parsed.hostname.replace(/^\[|\]$/g, '') || '127.0.0.1',
    port: parsed.port === '' ? defaultPort : Number(parsed.port),
    ...credentials,
    ...(path === '' ? {} : { database: databaseOf(path) }),
    ...(parsed.protocol === 'rediss:' ? { tls: true } : {}),
  }
}

function databaseOf(text: string): number {
  const database = Number(text)
  if (!Number.isInteger(database) || database < 0) {
    throw new FindError('FB_FIND_TARGET', `"${text}" is no database number; write redis://host:port/0`)
  }
  return database
}

/** `host:port` or the socket's path, as findings name a server. */
export function addressOf(target: RedisTarget): string {
  if (target.socketPath !== undefined) return target.socketPath
  const host = target.host ?? '127.0.0.1'
  return `${host.includes(':') ? `[${host}]` : host}:${target.port ?? defaultPort}`
}

/** A URL with its password hidden, for messages. */
export function maskUrl(url: string): string {
  return url.replace(/(\/\/[^/@:]*):[^@/]*@/, '$1:***@')
}
