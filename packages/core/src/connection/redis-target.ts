import { RedisUrlError } from './redis-error.ts'

/** Where a server is and how to log in. */
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
  /** TLS; `true` trusts the system's certificates. */
  readonly tls?: boolean | RedisTlsOptions
  /** @default 5000 */
  readonly connectTimeoutMs?: number
}

/** Certificates, as PEM. */
export interface RedisTlsOptions {
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
  /** The name that the server's certificate must carry. @default the host */
  readonly serverName?: string
  /** @default true */
  readonly isVerified?: boolean
}

/** The port of a Redis whose address names none. */
export const defaultRedisPort = 6379

const forms = 'redis://[user:password@]host:port[/database], rediss://… (TLS) or unix:///path[?db=1]'
// Parsed by hand: `URL` accepts neither several hosts nor a password with the characters that passwords often contain.
const urlPart = /^(?:(rediss?|unix|redis\+unix):\/\/)?(?:([^:@]*)(?::(.*))?@)?([^@]*)$/i
const hostPart = /^(\[[^\]]+\]|[^:[\]/?\s]+)(?::(\d{1,5}))?(?:\/(\d{1,9})?)?(?:\?.*)?$/
const pathPart = /^(\/[^?]+)(?:\?db=(\d{1,9}))?$/

/** A target from `redis://[user:password@]host:port[/database]`, `rediss://…` (TLS) or `unix:///path[?db=1]`. */
export function parseRedisUrl(url: string): RedisTarget {
  const targets = parseRedisUrls(url)
  if (targets.length === 1) return targets[0]!
  throw new RedisUrlError(`"${maskUrl(url)}" names several servers; give only one`)
}

/**
 * Several servers of one deployment, separated by commas: `redis://user:password@a:7000,b:7000/0`, or each as its own
 * URL. The scheme, user and password of the first one apply to all, as does the database, whichever of them names it.
 */
export function parseRedisUrls(text: string): readonly RedisTarget[] {
  const parts: UrlPart[] = []
  for (const one of text.split(',')) {
    const part = readPart(one.trim())
    const first = parts[0] ?? part
    // A name after a comma is a host, so it cannot follow a path.
    const inherited = first?.scheme === 'unix' ? undefined : first?.scheme
    // The first that cannot be read ends it, however many follow.
    if (part === undefined || first?.scheme === undefined || (part.scheme ?? inherited) !== first.scheme) {
      throw new RedisUrlError(`"${maskUrl(text)}" is not a Redis address; write ${forms}`)
    }
    parts.push(part)
  }
  const first = parts[0]!
  const database = parts.find((part) => part.database !== undefined)?.database
  return parts.map((part) => ({
    ...part.place,
    ...first.credentials,
    ...(database === undefined ? {} : { database: Number(database) }),
    ...(first.scheme === 'rediss' ? { tls: true } : {}),
  }))
}

interface UrlPart {
  readonly scheme: string | undefined
  readonly credentials: Pick<RedisTarget, 'username' | 'password'>
  readonly place: Pick<RedisTarget, 'host' | 'port' | 'socketPath'>
  readonly database: string | undefined
}

/** One server of a URL; undefined if it cannot be parsed. */
function readPart(text: string): UrlPart | undefined {
  try {
    const [, given, user, password, rest = ''] = urlPart.exec(text) ?? []
    const scheme = given?.toLowerCase().replace('redis+unix', 'unix')
    // After a comma, without a scheme, this would be the rest of a password.
    if (scheme === undefined && user !== undefined) return undefined
    const credentials = {
      ...(user ? { username: decodeURIComponent(user) } : {}),
      ...(password ? { password: decodeURIComponent(password) } : {}),
    }
    if (scheme === 'unix') {
      const [, path, database] = pathPart.exec(rest)!
      return { scheme, credentials, place: { socketPath: decodeURIComponent(path!) }, database }
    }
    const [, host, port = String(defaultRedisPort), database] = hostPart.exec(rest)!
    const place = { host: host!.replace(/^\[|\]$/g, ''), port: Number(port) }
    return place.port > 65_535 ? undefined : { scheme, credentials, place, database }
  } catch {
    return undefined
  }
}

/** `host:port` or the socket's path, as used in messages and findings. */
export function addressOf({ socketPath, host = '127.0.0.1', port = defaultRedisPort }: RedisTarget): string {
  if (socketPath !== undefined) return socketPath
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** A URL with its password hidden, for messages; with several servers, everything up to the last password is hidden. */
export function maskUrl(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)?([^/@:]*):.*@/i, '$1$2:***@')
}
