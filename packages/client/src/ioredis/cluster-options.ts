import type { IoredisClient, IoredisOptions } from './ioredis-client.ts'

/**
 * The options of a client's connections: one for a single Redis, one per node for a cluster. On a cluster, a start
 * node's own options take precedence over `redisOptions`, so the effective options can only be read from the nodes.
 */
export function connectionOptions(client: IoredisClient): readonly [IoredisOptions, ...IoredisOptions[]] {
  const { options } = client
  if (client.isCluster !== true) return [options]
  const { redisOptions = {} } = options
  const open = (client.nodes?.('all') ?? []).map((node) => node.options)
  const [first, ...others] =
    open.length > 0 ? open : (client.startupNodes ?? []).map((node) => startOptions(node, redisOptions))
  return [first ?? redisOptions, ...others]
}

/** The options of the connection to one node, as ioredis calls it. */
export function nodeOptions(client: IoredisClient, node: string): IoredisOptions {
  const all = connectionOptions(client)
  return all.find(({ host, port }) => `${host}:${port}` === node) ?? all[0]
}

function startOptions(node: unknown, redisOptions: IoredisOptions): IoredisOptions {
  const own = typeof node === 'string' ? optionsOfUrl(node) : typeof node === 'object' ? node : {}
  return { ...redisOptions, ...own }
}

/** What ioredis reads from the URL of a start node; `rediss` means nothing to it there. */
function optionsOfUrl(text: string): IoredisOptions {
  const address = /^rediss?:\/\//i.test(text) ? text : `redis://${text}`
  if (!URL.canParse(address)) return {}
  const { username, password, hostname, port, searchParams } = new URL(address)
  return {
    ...Object.fromEntries(searchParams),
    ...(hostname && { host: hostname.replace(/^\[|\]$/g, '') }),
    ...(port && { port: Number(port) }),
    ...((username || password) && { username: decodeURIComponent(username), password: decodeURIComponent(password) }),
  }
}
