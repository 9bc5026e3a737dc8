import { readFileSync } from 'node:fs'
import type { TlsOptions } from 'node:tls'
import { InvalidOptionError } from '@firebreak/core'
import type { OtlpOptions } from '@firebreak/core/metrics'
import type { ServerCertificates } from '@firebreak/core/node'
import { defaultRedisPort, maskUrl, parseRedisUrls, type RedisTarget } from '@firebreak/core/resp'
import type { ShieldOptions } from '@firebreak/shield'
import { ProxyStartError } from './errors.ts'
import { type ProxyLogger, processWarnings } from './observe/proxy-logger.ts'
import type { ProxyUserOptions } from './session/proxy-users.ts'
import type { ConnectTarget } from './transport/transport.ts'
import { type Identity, identityOf } from './upstream/identity.ts'

/** Options of a proxy; only `upstream` is required. */
export interface ProxyOptions {
  /**
   * The Redis behind the proxy: `redis://[user:password@]host:port[/database]`, `rediss://…` for TLS, `unix:///path`.
   * Several addresses separated by commas are nodes of one cluster, or Sentinels. Credentials in it are used for every
   * client that presents none of its own.
   */
  readonly upstream: string
  /** What is behind the proxy. @default 'auto': a cluster if the server says that it is one, otherwise one Redis */
  readonly mode?: 'auto' | 'single' | 'cluster' | 'sentinel'
  /** With Sentinels: the name of the group. @default 'mymaster' */
  readonly sentinelGroup?: string
  /** Credentials for the Sentinels themselves. */
  readonly sentinelPassword?: string
  /** @default '127.0.0.1' */
  readonly host?: string
  /**
   * Lets anyone in although the host is not loopback and neither the proxy nor Redis authenticates clients. @default
   * false
   */
  readonly allowAnyone?: boolean
  /** 0 picks a free port. @default 6380 */
  readonly port?: number
  /** Listen on this unix socket instead of a port. */
  readonly path?: string
  /** TLS towards clients: key and certificate, and anything else that `tls.createServer` takes. */
  readonly tls?: TlsOptions
  /**
   * The same from files, which are reloaded when they change. With `ca`, clients must present a certificate of that
   * authority, which may map to a user (`certificates` of `users`).
   */
  readonly tlsFiles?: TlsFiles
  /** TLS towards Redis beyond `rediss://`: a CA, a client certificate. */
  readonly upstreamTls?: import('node:tls').ConnectionOptions
  /** The proxy's own users. @default AUTH is passed on to Redis */
  readonly users?: readonly ProxyUserOptions[]
  /**
   * Counts keys, reports to a hub, and handles hot ones: the shield's options, and the hub's name for this Redis.
   * @default a plain proxy
   */
  readonly shield?: ShieldOptions & { readonly redisClusterId?: string }
  /** Worker threads sharing the port. 1: everything in this thread. @default 1 */
  readonly workers?: number
  /**
   * Node's public sockets, or the raw handles beneath them, which take a quarter less CPU; `auto` uses raw handles if a
   * check at startup passes. @default 'auto'
   */
  readonly transport?: 'auto' | 'net' | 'raw'
  /** Maximum number of clients, over all workers. @default 10000 */
  readonly maxClients?: number
  /** Maximum size of one argument of a request in bytes. @default 536870912 */
  readonly maxRequestBytes?: number
  /**
   * Maximum size of a request that cannot be forwarded as it arrives: one over several slots of a cluster, or one that
   * the proxy answers itself. @default 134217728
   */
  readonly maxHeldBytes?: number
  /**
   * Unread output of a client above which its replies, and those that send them, have to wait; at least 65536.
   * @default 16777216
   */
  readonly maxOutputBytes?: number
  /**
   * Like `maxOutputBytes`, for all clients together: above it no requests are taken until some has been sent. @default
   * 268435456
   */
  readonly maxTotalOutputBytes?: number
  /**
   * Bytes queued for Redis on shared connections above which clients have to wait; checked every tenth of a second.
   * @default 67108864
   */
  readonly maxQueuedBytes?: number
  /** Requests of one client in flight. @default 65536 */
  readonly maxInFlight?: number
  /** Close a client that has held others up for this long by not reading. @default 10000 */
  readonly slowReaderMs?: number
  /** Close a client that has sent nothing for this long; 0: never. @default 0 */
  readonly idleTimeoutMs?: number
  /**
   * Close a client that has not logged in (if the proxy has users) or not finished its TLS handshake after this long.
   * @default 10000
   */
  readonly authTimeoutMs?: number
  /** How long requests wait for a connection to Redis before they fail. @default 2000 */
  readonly connectWaitMs?: number
  /** How long to retry redirected requests and lost nodes of a cluster, if that is safe. @default 20000 */
  readonly retryForMs?: number
  /** Dedicated connections kept open for reuse, per user, protocol and database. @default 64 */
  readonly maxIdleConnections?: number
  /** Close a connection to Redis that has been unused for this long, including shared ones. @default 30000 */
  readonly idleConnectionMs?: number
  /** Requests slower than this go to the slow log. @default 10 */
  readonly slowLogMs?: number
  /** Entries of the slow log. @default 128 */
  readonly slowLogLength?: number
  /**
   * Lets other proxies listen on the port too: a new one takes over while this one lingers. One thread only. @default
   * false
   */
  readonly sharedPort?: boolean
  /** How long `close` keeps serving connected clients while accepting no new ones. @default 0 */
  readonly lingerMs?: number
  /** How long `close` then waits for pending replies before it disconnects clients. @default 5000 */
  readonly drainMs?: number
  /** Serves `/metrics` for Prometheus, `/livez` and `/readyz` over HTTP. @default not served */
  readonly metricsPort?: number
  /** The address of the metrics port. @default as `host` */
  readonly metricsHost?: string
  /** The token that `/metrics` requires as `Authorization: Bearer`. @default none */
  readonly metricsToken?: string
  /** Pushes the proxy's metrics to an OpenTelemetry collector. @default nothing is pushed */
  readonly otlp?: OtlpOptions
  /** Logs when Redis or the collector becomes unreachable and when it recovers. @default process warnings */
  readonly logger?: ProxyLogger
  /** Presents a single Redis as a cluster of one to clients that ask with CLUSTER SLOTS. @default false */
  readonly asCluster?: boolean
  /**
   * The proxy's address in CLUSTER SLOTS. @default host and port; for a host like 0.0.0.0, the address that the client
   * reached
   */
  readonly announce?: { readonly host: string; readonly port: number }
}

/** PEM files. */
export interface TlsFiles {
  readonly cert: string
  readonly key: string
  /** The authority for client certificates. */
  readonly ca?: string
}

/** `ProxyOptions` with every default filled in. */
export interface ResolvedProxyOptions
  extends Required<Omit<ProxyOptions, OptionalNames>>,
    Pick<ProxyOptions, OptionalNames> {
  readonly targets: readonly ConnectTarget[]
  readonly identity: Identity
  readonly database: number
}

type OptionalNames =
  | 'shield'
  | 'path'
  | 'tls'
  | 'tlsFiles'
  | 'upstreamTls'
  | 'users'
  | 'sentinelPassword'
  | 'announce'
  | 'metricsPort'
  | 'metricsHost'
  | 'metricsToken'
  | 'otlp'

const defaults = {
  mode: 'auto',
  sentinelGroup: 'mymaster',
  host: '127.0.0.1',
  allowAnyone: false,
  port: 6380,
  workers: 1,
  transport: 'auto',
  maxClients: 10_000,
  maxRequestBytes: 512 * 1024 * 1024,
  maxHeldBytes: 128 * 1024 * 1024,
  maxOutputBytes: 16 * 1024 * 1024,
  maxTotalOutputBytes: 256 * 1024 * 1024,
  maxQueuedBytes: 64 * 1024 * 1024,
  maxInFlight: 65_536,
  slowReaderMs: 10_000,
  idleTimeoutMs: 0,
  authTimeoutMs: 10_000,
  connectWaitMs: 2000,
  retryForMs: 20_000,
  maxIdleConnections: 64,
  idleConnectionMs: 30_000,
  slowLogMs: 10,
  slowLogLength: 128,
  sharedPort: false,
  lingerMs: 0,
  drainMs: 5000,
  asCluster: false,
  logger: processWarnings,
} as const

const countOptions = [
  'workers',
  'maxClients',
  'maxRequestBytes',
  'maxHeldBytes',
  'maxOutputBytes',
  'maxTotalOutputBytes',
  'maxQueuedBytes',
  'maxInFlight',
  'slowReaderMs',
  'authTimeoutMs',
  'connectWaitMs',
  'retryForMs',
] as const

/** Validates the options and fills in the defaults. */
export function resolveProxyOptions(options: ProxyOptions): ResolvedProxyOptions {
  const given = Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined))
  const resolved = { ...defaults, ...given } as Required<ProxyOptions>
  for (const name of countOptions) {
    const value = resolved[name]
    if (!Number.isSafeInteger(value) || value < 1) throw new InvalidOptionError(name, value, 'a whole number above 0')
  }
  for (const name of ['port', 'metricsPort'] as const) {
    const port = resolved[name] ?? 0
    if (Number.isInteger(port) && port >= 0 && port <= 65_535) continue
    throw new InvalidOptionError(name, port, 'a port, or 0 for a free one')
  }
  const tls = resolved.tlsFiles === undefined ? resolved.tls : { ...resolved.tls, ...readTlsFiles(resolved.tlsFiles) }
  return { ...resolved, tls, ...parseUpstream(resolved.upstream, options.upstreamTls) }
}

/** Loads the files; clients must present a certificate if there is an authority for it. */
export function readTlsFiles({ cert, key, ca }: TlsFiles): TlsOptions & ServerCertificates {
  const read = (name: string, file: string) => {
    try {
      return readFileSync(file)
    } catch (cause) {
      throw new ProxyStartError(`tlsFiles.${name} cannot be read: ${(cause as Error).message}`, { cause })
    }
  }
  const asked = ca === undefined ? {} : { ca: read('ca', ca), requestCert: true, rejectUnauthorized: true }
  return { cert: read('cert', cert), key: read('key', key), ...asked }
}

/** Parses the address or addresses of the Redis behind the proxy. */
export function parseUpstream(
  text: string,
  tls?: import('node:tls').ConnectionOptions,
): Pick<ResolvedProxyOptions, 'targets' | 'identity' | 'database'> {
  const servers = readUrls(text)
  const { username, password, database = 0 } = servers[0]!
  return {
    targets: servers.map(({ host = '127.0.0.1', port = defaultRedisPort, socketPath, tls: isTls }) => ({
      host,
      port,
      path: socketPath,
      tls: isTls === true || tls !== undefined ? { ...tls } : undefined,
    })),
    identity: identityOf(username, password),
    database,
  }
}

function readUrls(text: string): readonly RedisTarget[] {
  try {
    return parseRedisUrls(/^[a-z+]+:\/\//i.test(text.trim()) ? text : `redis://${text}`)
  } catch {
    const expected = 'an address such as redis://127.0.0.1:6379/0, rediss://… or unix:///path'
    throw new InvalidOptionError('upstream', maskUrl(text), expected)
  }
}
