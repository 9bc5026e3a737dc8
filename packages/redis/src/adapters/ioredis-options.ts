import { parseRedisUrl, type RedisTarget, type RedisTlsOptions } from '@firebreak/core/resp'

/** The options by which ioredis reaches one server. */
export interface IoredisAddress {
  readonly host?: string
  readonly port?: number
  readonly path?: string
  readonly username?: string
  readonly password?: string
  readonly db?: number
  readonly tls?: object
  readonly connectTimeout?: number
}

/**
 * An address as ioredis takes it. Its own URL parser does not support Unix sockets, and ignores `rediss` and the
 * database in a cluster's start nodes; so `core` parses all URLs and only their parts are passed on.
 */
export function ioredisOptions(address: string | RedisTarget): IoredisAddress {
  const target = typeof address === 'string' ? parseRedisUrl(address) : address
  const { host, port, socketPath, username, password, database, tls, connectTimeoutMs } = target
  const secure = tls === true ? {} : tls === undefined || tls === false ? undefined : tlsOptions(tls)
  return {
    ...(socketPath !== undefined && { path: socketPath }),
    ...(host !== undefined && { host }),
    ...(port !== undefined && { port }),
    ...(username !== undefined && { username }),
    ...(password !== undefined && { password }),
    ...(database !== undefined && { db: database }),
    ...(secure !== undefined && { tls: secure }),
    ...(connectTimeoutMs !== undefined && { connectTimeout: connectTimeoutMs }),
  }
}

function tlsOptions({ ca, certificate, key, serverName, isVerified }: RedisTlsOptions): object {
  return {
    ...(ca !== undefined && { ca }),
    ...(certificate !== undefined && { cert: certificate }),
    ...(key !== undefined && { key }),
    ...(serverName !== undefined && { servername: serverName }),
    ...(isVerified !== undefined && { rejectUnauthorized: isVerified }),
  }
}
