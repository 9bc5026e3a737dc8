import { systemRuntime } from '@firebreak/core'
import { maskUrl, parseRedisUrls, type RedisTarget } from '@firebreak/core/resp'
import { type IoredisAddress, ioredisOptions, replyErrorCode, toRedis } from '@firebreak/redis'
import { HubConfigError, StoreError } from '../errors.ts'
import { LateRedis, type OpenedRedis } from './late-redis.ts'
import { RedisStore, type RedisStoreOptions } from './redis-store.ts'
import { explainStoreTrouble } from './store-trouble.ts'

/** A Redis that has not answered by then counts as unreachable: the hub continues from memory and retries. */
const timeoutMs = 2000
const retryMs = (attempt: number) => Math.min(500, attempt * 50)
/** How often a Redis that did not answer at the start is retried. */
const lateRetryMs = 500
/** Errors that waiting does not fix: a wrong user or password, missing permissions, no such database. */
const lastingErrors: ReadonlySet<string> = new Set(['NOAUTH', 'WRONGPASS', 'NOPERM', 'ERR'])

const redisOptions = {
  // A hub never waits for its Redis: what cannot be sent fails, is reported, and is retried by its sender.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  commandTimeout: timeoutMs,
  connectTimeout: timeoutMs,
  retryStrategy: retryMs,
}

/** Hosts of one Redis or of some nodes of a Redis Cluster, and their common settings. */
interface StoreAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly common: IoredisAddress
}

/**
 * Opens a store from `redis://[user:password@]host:port[,host:port…][/database]` (`rediss://` for TLS). The server
 * itself says whether it is a cluster; of several hosts, the first that answers is asked. If none answers, the store is
 * returned anyway: it refuses every call and connects by itself as soon as one does. A server that answers and refuses
 * us means a wrong setting, which is reported at once.
 */
export async function openRedisStore(url: string, options: RedisStoreOptions = {}): Promise<RedisStore> {
  const address = parseStoreUrl(url)
  const shown = maskUrl(url)
  const ioredis = await loadIoredis()
  const open = () => connect(address, ioredis)
  try {
    const { redis, disconnect } = await open()
    return new RedisStore(redis, { ...options, address: shown, disconnect })
  } catch (error) {
    const code = replyErrorCode((error as StoreError).cause)
    if (code !== undefined && lastingErrors.has(code)) throw error
    const late = new LateRedis({ open, failure: error as Error, timers: systemRuntime.timers, retryMs: lateRetryMs })
    return new RedisStore(late, { ...options, address: shown, disconnect: () => late.close() })
  }
}

async function connect({ nodes, common }: StoreAddress, { Redis, Cluster }: Ioredis): Promise<OpenedRedis> {
  const settings = { ...redisOptions, ...common }
  let failure: unknown
  for (const node of nodes) {
    const alone = new Redis({ ...settings, ...node, lazyConnect: true })
    // The client reconnects by itself; without a listener its errors would be thrown.
    alone.on('error', (error) => {
      failure = error
    })
    try {
      await alone.connect()
      const isCluster = (await alone.info('cluster')).includes('cluster_enabled:1')
      if (!isCluster) return { redis: toRedis(alone), disconnect: () => alone.disconnect() }
      alone.disconnect()
      const cluster = new Cluster([...nodes], {
        redisOptions: settings,
        enableOfflineQueue: false,
        clusterRetryStrategy: retryMs,
        slotsRefreshTimeout: timeoutMs,
        lazyConnect: true,
      })
      cluster.on('error', () => {})
      await connectCluster(cluster)
      return { redis: toRedis(cluster), disconnect: () => cluster.disconnect() }
    } catch (error) {
      alone.disconnect()
      // For a refused connection, the client only says that it is closed.
      if (replyErrorCode(error) !== undefined || failure === undefined) failure = error
    }
  }
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
  throw new StoreError(`the store at ${hosts} cannot be reached: ${explainStoreTrouble(failure)}`, { cause: failure })
}

/** A cluster client that failed to connect must not keep trying alongside the next attempt. */
async function connectCluster(cluster: { connect(): Promise<void>; disconnect(): void }): Promise<void> {
  try {
    await cluster.connect()
  } catch (error) {
    cluster.disconnect()
    throw error
  }
}

/** The addresses in a store's URL; an invalid one is reported without its password. */
function parseStoreUrl(text: string): StoreAddress {
  const servers = readUrls(text)
  const { host: _host, port: _port, ...common } = ioredisOptions(servers[0]!)
  return { nodes: servers.map(({ host, port }) => ({ host: host!, port: port! })), common }
}

function readUrls(text: string): readonly RedisTarget[] {
  const wrong = (cause?: unknown) =>
    new HubConfigError(
      'storeUrl',
      'storeUrl must be redis://[user:password@]host:port, several hosts separated by commas',
      {
        cause,
      },
    )
  let servers: readonly RedisTarget[]
  try {
    servers = parseRedisUrls(text)
  } catch (error) {
    throw wrong(error)
  }
  if (servers.some(({ socketPath }) => socketPath !== undefined)) throw wrong()
  return servers
}

type Ioredis = Pick<typeof import('ioredis'), 'Redis' | 'Cluster'>

async function loadIoredis(): Promise<Ioredis> {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw new StoreError('a store on Redis needs the package ioredis installed with the hub', { cause })
  }
}
