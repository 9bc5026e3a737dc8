import { parseRedisUrls, type RedisTarget } from '@firebreak/core'
import { toRedis } from '@firebreak/redis'
import { HubConfigError, StoreError } from '../errors.ts'
import { RedisStore, type RedisStoreOptions } from './redis-store.ts'

/** A Redis that does not answer by then is away: the hub goes on from memory and tries again. */
const timeoutMs = 2000
const retryMs = (attempt: number) => Math.min(500, attempt * 50)

const redisOptions = {
  // A hub never waits for its Redis: what cannot be sent fails, is told of, and is tried again by whoever sent it.
  enableOfflineQueue: false,
  maxRetriesPerRequest: 0,
  commandTimeout: timeoutMs,
  connectTimeout: timeoutMs,
  retryStrategy: retryMs,
}

/** Hosts of one Redis or of some nodes of a Redis Cluster, and what is common to them. */
interface StoreAddress {
  readonly nodes: readonly { readonly host: string; readonly port: number }[]
  readonly common: {
    readonly username?: string
    readonly password?: string
    readonly db?: number
    readonly tls?: object
  }
}

/**
 * Opens a store from `redis://[user:password@]host:port[,host:port…][/database]` (`rediss://` for TLS). Whether a cluster is
 * behind it, the server says itself; of several hosts the first that answers is asked.
 */
export async function openRedisStore(url: string, options: RedisStoreOptions = {}): Promise<RedisStore> {
  const { nodes, common } = parseStoreUrl(url)
  const { Redis, Cluster } = await loadIoredis()
  const settings = { ...redisOptions, ...common }
  let failure: unknown
  for (const node of nodes) {
    const alone = new Redis({ ...settings, ...node, lazyConnect: true })
    // The client reconnects by itself; without a listener its errors would be thrown.
    alone.on('error', () => {})
    try {
      await alone.connect()
      const isCluster = (await alone.info('cluster')).includes('cluster_enabled:1')
      if (!isCluster) return new RedisStore(toRedis(alone), { ...options, disconnect: () => alone.disconnect() })
      alone.disconnect()
      const cluster = new Cluster([...nodes], {
        redisOptions: settings,
        enableOfflineQueue: false,
        clusterRetryStrategy: retryMs,
        slotsRefreshTimeout: timeoutMs,
        lazyConnect: true,
      })
      cluster.on('error', () => {})
      await cluster.connect()
      return new RedisStore(toRedis(cluster), { ...options, disconnect: () => cluster.disconnect() })
    } catch (error) {
      alone.disconnect()
      failure = error
    }
  }
  const hosts = nodes.map(({ host, port }) => `${host}:${port}`).join(', ')
  throw new StoreError(`the store at ${hosts} cannot be reached: ${(failure as Error).message}`, { cause: failure })
}

/** The addresses of a store's URL; a wrong one is told without its password. */
function parseStoreUrl(text: string): StoreAddress {
  const servers = readUrls(text)
  const { username, password, database, tls } = servers[0]!
  return {
    nodes: servers.map(({ host, port }) => ({ host: host!, port: port! })),
    common: {
      ...(username !== undefined && { username }),
      ...(password !== undefined && { password }),
      ...(database !== undefined && { db: database }),
      ...(tls === true && { tls: {} }),
    },
  }
}

function readUrls(text: string): readonly RedisTarget[] {
  const wrong = (cause?: unknown) =>
    new HubConfigError('storeUrl', 'storeUrl must be redis://[user:password@]host:port, several hosts with commas', {
      cause,
    })
  let servers: readonly RedisTarget[]
  try {
    servers = parseRedisUrls(text)
  } catch (error) {
    throw wrong(error)
  }
  if (servers.some(({ socketPath }) => socketPath !== undefined)) throw wrong()
  return servers
}

async function loadIoredis() {
  try {
    return await import('ioredis')
  } catch (cause) {
    throw new StoreError('a store on Redis needs the package ioredis beside the hub', { cause })
  }
}
