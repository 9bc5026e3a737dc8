import { version } from '@firebreak/core'
import { type RedisClient, toRedis } from '@firebreak/redis'
import { type ClusterShield, Shield, type ShieldOptions, type Upstream } from '@firebreak/shield'
import { ClientUnsupportedError } from './errors.ts'
import type { IoredisClient } from './ioredis/ioredis-client.ts'
import { IoredisHooks } from './ioredis/ioredis-hooks.ts'
import { defaultClusterId, IoredisUpstream } from './ioredis/ioredis-upstream.ts'
import { isNodeRedis } from './node-redis/node-redis-client.ts'
import { NodeRedisHooks } from './node-redis/node-redis-hooks.ts'
import { NodeRedisUpstream, nodeRedisClusterId } from './node-redis/node-redis-upstream.ts'
import type { ProtectOptions } from './protect-options.ts'

/** What the hooks of every client library can do. */
interface Hooks {
  install(): () => void
  peek(key: string): string | null | undefined
}

interface Protection {
  readonly hooks: Hooks
  readonly shield: Shield
  readonly cluster: ClusterShield
  end(): void
}

interface SharedShield {
  readonly options: ShieldOptions
  readonly shield: Shield
  users: number
}

const protections = new WeakMap<object, Protection>()
const sharedShields: SharedShield[] = []

/**
 * Protects a client: its accesses are counted and reported, and hot keys are handled as the hub says. It is the same
 * object, with every method as it was; `unprotect` gives it back bare. With `FIREBREAK=off` in the environment nothing
 * is done at all.
 */
export function protect<Client extends object>(client: Client, options: ProtectOptions = {}): Client {
  if (isOffByEnvironment() || protections.has(client)) return client
  const library = libraryOf(client)
  const { redisClusterId = library.defaultClusterId, shield: ownShield, ...shieldOptions } = options
  const agent = shieldOptions.agent ?? `client/${version} ${library.name}`
  const shared = ownShield === undefined ? shareShield({ ...shieldOptions, agent }) : undefined
  const shield = ownShield ?? shared!.shield
  const cluster = shield.cluster(redisClusterId, library.upstream)
  cluster.limitRedis ??= toRedis(client as unknown as RedisClient)
  const hooks = library.makeHooks(shield, cluster)
  const uninstall = hooks.install()
  protections.set(client, {
    hooks,
    shield,
    cluster,
    end() {
      uninstall()
      if (shared !== undefined) releaseShield(shared)
    },
  })
  return client
}

/** Takes the hooks away; the last client of a shield also ends its link and its own connections. */
export function unprotect(client: object): void {
  protections.get(client)?.end()
  protections.delete(client)
}

/** The shield that a protected client works with; undefined where it is not protected. */
export function shieldOf(client: object): Shield | undefined {
  return protections.get(client)?.shield
}

/** The shield of the Redis behind a protected client. */
export function clusterOf(client: object): ClusterShield | undefined {
  return protections.get(client)?.cluster
}

/**
 * The value of a hot string key, without a promise, if memory has it at this moment: null for a key that does not
 * exist, undefined where only a normal read can tell.
 */
export function peek(client: object, key: string): string | null | undefined {
  return protections.get(client)?.hooks.peek(key)
}

function isOffByEnvironment(): boolean {
  return ['off', '0', 'false', 'no'].includes((process.env['FIREBREAK'] ?? '').toLowerCase())
}

interface Library {
  readonly name: string
  readonly defaultClusterId: string
  readonly upstream: Upstream
  makeHooks(shield: Shield, cluster: ClusterShield): Hooks
}

function libraryOf(client: object): Library {
  if (isIoredis(client)) {
    return {
      name: 'ioredis',
      defaultClusterId: defaultClusterId(client),
      upstream: new IoredisUpstream(client),
      makeHooks: (shield, cluster) => new IoredisHooks(client, shield, cluster),
    }
  }
  if (!isNodeRedis(client)) throw new ClientUnsupportedError(client)
  const upstream = new NodeRedisUpstream(client)
  return {
    name: 'node-redis',
    defaultClusterId: nodeRedisClusterId(client),
    upstream,
    makeHooks: (shield, cluster) =>
      new NodeRedisHooks(client, shield, cluster, (connection) => upstream.saw(connection)),
  }
}

function isIoredis(client: object): client is IoredisClient {
  const shape = client as Partial<IoredisClient & { callBuffer: unknown }>
  return typeof shape.sendCommand === 'function' && typeof shape.callBuffer === 'function'
}

function shareShield(options: ShieldOptions): SharedShield {
  let shared = sharedShields.find((candidate) => isSame(candidate.options, options))
  if (shared === undefined) {
    shared = { options, shield: new Shield(options), users: 0 }
    sharedShields.push(shared)
  }
  shared.users++
  return shared
}

function releaseShield(shared: SharedShield): void {
  if (--shared.users > 0) return
  sharedShields.splice(sharedShields.indexOf(shared), 1)
  shared.shield.close()
}

function isSame(a: ShieldOptions, b: ShieldOptions): boolean {
  const names = new Set([...Object.keys(a), ...Object.keys(b)]) as Set<keyof ShieldOptions>
  return [...names].every((name) => a[name] === b[name] || (isData(name) && isEqual(a[name], b[name])))
}

/** Options that are written down anew at each call. */
function isData(name: keyof ShieldOptions): boolean {
  return name === 'hubs' || name === 'diskTier'
}

function isEqual(a: unknown, b: unknown): boolean {
  return JSON.stringify(a) === JSON.stringify(b)
}
