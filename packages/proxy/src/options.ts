import type { TlsOptions } from 'node:tls'
import { InvalidOptionError } from '@firebreak/core'
import type { OtlpOptions } from '@firebreak/core/metrics'
import { defaultRedisPort, maskUrl, parseRedisUrls, type RedisTarget } from '@firebreak/core/resp'
import type { ShieldOptions } from '@firebreak/shield'
import { type ProxyLogger, processWarnings } from './observe/proxy-logger.ts'
import type { ProxyUserOptions } from './session/proxy-users.ts'
import type { ConnectTarget } from './transport/transport.ts'
import { type Identity, identityOf } from './upstream/identity.ts'

/** How a proxy works; only `upstream` is needed. */
export interface ProxyOptions {
  /**
   * The Redis behind: `redis://[user:password@]host:port[/database]`, `rediss://…` for TLS, `unix:///path`. Several
   * addresses with commas between are nodes of one cluster or Sentinels. Credentials in it are those of every client
   * that shows none of its own.
   */
  readonly upstream: string
  /** What is behind. @default 'auto': a cluster where the server says that it is one, else one Redis */
  readonly mode?: 'auto' | 'single' | 'cluster' | 'sentinel'
  /** With Sentinels: the name of the group. @default 'mymaster' */
  readonly sentinelGroup?: string
  /** Credentials for the Sentinels themselves. */
  readonly sentinelPassword?: string
  /** @default '127.0.0.1' */
  readonly host?: string
  /** Lets anybody in where the host is not loopback and neither the proxy nor Redis asks who it is. @default false */
  readonly allowAnyone?: boolean
  /** 0 takes a free one. @default 6380 */
  readonly port?: number
  /** Listens on this unix socket instead of a port. */
  readonly path?: string
  /** TLS towards clients: key and certificate, and what else `tls.createServer` takes. */
  readonly tls?: TlsOptions
  /** TLS towards Redis beyond `rediss://`: a CA, a client certificate. */
  readonly upstreamTls?: import('node:tls').ConnectionOptions
  /** Users of the proxy's own. @default AUTH is passed on to Redis */
  readonly users?: readonly ProxyUserOptions[]
  /**
   * Counts keys, tells a hub, and handles hot ones: the shield's options, and by which name the hub knows this Redis.
   * @default a plain proxy
   */
  readonly shield?: ShieldOptions & { readonly redisClusterId?: string }
  /** Worker threads on the one port. 1: all in this thread. @default 1 */
  readonly workers?: number
  /** Node's public sockets, or its raw handles, which take a quarter less CPU where this Node has them. @default 'net' */
  readonly transport?: 'net' | 'raw'
  /** Clients at once, over all workers. @default 10000 */
  readonly maxClients?: number
  /** Bytes of one argument of a request. @default 536870912 */
  readonly maxRequestBytes?: number
  /**
   * Bytes of a request that cannot be sent on as it comes: one over several slots of a cluster, one that the proxy answers
   * itself. @default 134217728
   */
  readonly maxHeldBytes?: number
  /**
   * Bytes that a client may leave unread before its replies, and those who send them, have to wait; 65536 at least.
   * @default 16777216
   */
  readonly maxOutputBytes?: number
  /** As `maxOutputBytes`, of all clients together: beyond it nobody's requests are taken until some has left. @default 268435456 */
  readonly maxTotalOutputBytes?: number
  /**
   * Bytes that Redis may leave untaken on shared connections before clients have to wait with more: looked at every tenth
   * of a second. @default 67108864
   */
  readonly maxQueuedBytes?: number
  /** Requests of one client on their way. @default 65536 */
  readonly maxInFlight?: number
  /** A client that holds up others by not reading for this long is closed. @default 10000 */
  readonly slowReaderMs?: number
  /** A client that sends nothing for this long is closed; 0: never. @default 0 */
  readonly idleTimeoutMs?: number
  /** How long requests wait for a connection to Redis before they fail. @default 2000 */
  readonly connectWaitMs?: number
  /** How long a cluster's redirections and lost nodes are retried where that is safe. @default 20000 */
  readonly retryForMs?: number
  /** Connections of their own kept for the next client that needs one, per user, protocol and database. @default 64 */
  readonly maxIdleConnections?: number
  /** A connection to Redis that nobody uses for this long is closed, one that clients share too. @default 30000 */
  readonly idleConnectionMs?: number
  /** Requests that took longer are kept in the slow log. @default 10 */
  readonly slowLogMs?: number
  /** Entries of the slow log. @default 128 */
  readonly slowLogLength?: number
  /** How long `close` waits for what is owed before it cuts. @default 5000 */
  readonly drainMs?: number
  /** Serves `/metrics` for Prometheus, `/livez` and `/readyz` over HTTP. @default not served */
  readonly metricsPort?: number
  /** Where that listens. @default as `host` */
  readonly metricsHost?: string
  /** Pushes the proxy's metrics to an OpenTelemetry collector. @default nothing is pushed */
  readonly otlp?: OtlpOptions
  /** Told when a Redis or that collector is away and when it is back. @default a process warning each */
  readonly logger?: ProxyLogger
  /** A single Redis shows itself as a cluster of one to clients that ask with CLUSTER SLOTS. @default false */
  readonly asCluster?: boolean
  /**
   * What clients are told as the proxy's address, by CLUSTER SLOTS. @default host and port; with a host as 0.0.0.0, the
   * address that the client has reached
   */
  readonly announce?: { readonly host: string; readonly port: number }
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
  | 'upstreamTls'
  | 'users'
  | 'sentinelPassword'
  | 'announce'
  | 'metricsPort'
  | 'metricsHost'
  | 'otlp'

const defaults = {
  mode: 'auto',
  sentinelGroup: 'mymaster',
  host: '127.0.0.1',
  allowAnyone: false,
  port: 6380,
  workers: 1,
  transport: 'net',
  maxClients: 10_000,
  maxRequestBytes: 512 * 1024 * 1024,
  maxHeldBytes: 128 * 1024 * 1024,
  maxOutputBytes: 16 * 1024 * 1024,
  maxTotalOutputBytes: 256 * 1024 * 1024,
  maxQueuedBytes: 64 * 1024 * 1024,
  maxInFlight: 65_536,
  slowReaderMs: 10_000,
  idleTimeoutMs: 0,
  connectWaitMs: 2000,
  retryForMs: 20_000,
  maxIdleConnections: 64,
  idleConnectionMs: 30_000,
  slowLogMs: 10,
  slowLogLength: 128,
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
  'connectWaitMs',
  'retryForMs',
] as const

/** Checks the options and fills the defaults in. */
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
  return { ...resolved, ...parseUpstream(resolved.upstream, options.upstreamTls) }
}

/** Reads the address or addresses of the Redis behind. */
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
    const expected = 'an address as redis://127.0.0.1:6379/0, rediss://… or unix:///path'
    throw new InvalidOptionError('upstream', maskUrl(text), expected)
  }
}
