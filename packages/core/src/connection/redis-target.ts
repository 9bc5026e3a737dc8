import { RedisUrlError } from './redis-error.ts'

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
  readonly tls?: boolean | RedisTlsOptions
  /** @default 5000 */
  readonly connectTimeoutMs?: number
}

/** Certificates, as PEM. */
export interface RedisTlsOptions {
  readonly ca?: string
  readonly certificate?: string
  readonly key?: string
  /** The name that the server's certificate must have. @default the host */
  readonly serverName?: string
  /** @default true */
  readonly isVerified?: boolean
}

/** The port of a Redis that names none. */
export const defaultRedisPort = 6379

const forms = 'redis://[user:password@]host:port[/database], rediss://… (TLS) or unix:///path[?db=1]'
const place = /^(\[[^\]]+\]|[^:[\]]*)(?::(\d{1,5}))?$/

/** A target from `redis://[user:password@]host:port[/database]`, `rediss://…` (TLS) or `unix:///path[?db=1]`. */
export function parseRedisUrl(url: string): RedisTarget {
  const targets = parseRedisUrls(url)
  if (targets.length === 1) return targets[0]!
  throw new RedisUrlError(`"${maskUrl(url)}" names several servers; one is wanted`)
}

/**
 * Several servers of one deployment, with commas between them: `redis://user:password@a:7000,b:7000/0`, or each as a URL
 * of its own. What the first says of user and password, and any of them of TLS and the database, holds for all.
 */
export function parseRedisUrls(text: string): readonly RedisTarget[] {
  const parts = text.split(',').map((part) => parsePart(part.trim(), text))
  const { scheme, user } = parts[0]!
  const isSame = parts.every((part) => part.scheme === undefined || part.scheme === scheme)
  const isUnnamed = scheme === 'unix' && parts.some((part) => part.scheme === undefined)
  if (scheme === undefined || !isSame || isUnnamed) throw unreadable(text)
  const database = parts.find((part) => part.database !== undefined)?.database
  const common = {
    ...credentialsOf(user, text),
    ...(database === undefined ? {} : { database: databaseOf(database, text) }),
    ...(scheme === 'rediss' ? { tls: true } : {}),
  }
  return parts.map(({ where }) => ({
    ...(scheme === 'unix' ? { socketPath: where } : placeOf(where, text)),
    ...common,
  }))
}

interface UrlPart {
  readonly scheme: string | undefined
  readonly user: string | undefined
  /** Host and port, or a path. */
  readonly where: string
  readonly database: string | undefined
}

/** Read by hand: `URL` takes neither several hosts nor a password with the characters that people put in one. */
function parsePart(part: string, whole: string): UrlPart {
  const match = /^(?:([a-z][a-z+]*):\/\/)?(?:(.*)@)?([^@]*)$/i.exec(part)
  if (match === null) throw unreadable(whole)
  const [, given, user, rest = ''] = match
  const [path = '', query] = rest.split('?')
  const scheme = given?.toLowerCase().replace('redis+unix', 'unix')
  if (scheme !== undefined && !['redis', 'rediss', 'unix'].includes(scheme)) throw unreadable(whole)
  if (scheme === 'unix') {
    if (!path.startsWith('/')) throw unreadable(whole)
    const database = new URLSearchParams(query).get('db') ?? undefined
    return { scheme, user, where: decoded(path, whole), database }
  }
  const [where = '', database] = path.split(/\/(.*)/)
  return { scheme, user, where, database: database === '' ? undefined : database }
}

function placeOf(where: string, whole: string): { host: string; port: number } {
  const [, host, port = defaultRedisPort] = place.exec(where) ?? []
  if (host === undefined || host === '' || Number(port) > 65_535) throw unreadable(whole)
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** `user:password`, `:password`, or a user alone. */
function credentialsOf(user: string | undefined, whole: string): { username?: string; password?: string } {
  if (user === undefined) return {}
  const colon = user.indexOf(':')
  const username = colon < 0 ? user : user.slice(0, colon)
  const password = colon < 0 ? '' : user.slice(colon + 1)
  return {
    ...(username === '' ? {} : { username: decoded(username, whole) }),
    ...(password === '' ? {} : { password: decoded(password, whole) }),
  }
}

function databaseOf(text: string, whole: string): number {
  if (!/^\d{1,9}$/.test(text)) throw unreadable(whole)
  return Number(text)
}

function decoded(text: string, whole: string): string {
  try {
    return decodeURIComponent(text)
  } catch {
    throw unreadable(whole)
  }
}

function unreadable(text: string): RedisUrlError {
  return new RedisUrlError(`"${maskUrl(text)}" is not the address of a Redis; write ${forms}`)
}

/** `host:port` or the socket's path, as messages and findings name a server. */
export function addressOf({ socketPath, host = '127.0.0.1', port = defaultRedisPort }: RedisTarget): string {
  if (socketPath !== undefined) return socketPath
  return `${host.includes(':') ? `[${host}]` : host}:${port}`
}

/** A URL with its password hidden, for messages; of several, all up to the last password. */
export function maskUrl(url: string): string {
  return url.replace(/^([a-z+]+:\/\/)?([^/@:]*):.*@/i, '$1$2:***@')
}
