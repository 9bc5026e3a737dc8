import { version } from '@firebreak/core'
import { type RedisClient, toRedis } from '@firebreak/redis'
import { type ClusterShield, isOffByEnvironment, type Shield } from '@firebreak/shield'
import { checkProtectOptions, unsupportedClient } from './check-options.ts'
import { ClusterClients, type Membership } from './clients/cluster-clients.ts'
import type { ClientMember } from './clients/open-clients.ts'
import { type ShieldUser, shareShield, type WarningListener } from './clients/shared-shields.ts'
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

/** Everything that belongs to one client. Held only by the client, so that both are freed together. */
interface Protection {
  readonly hooks: Hooks
  readonly shield: Shield
  readonly cluster: ClusterShield
  readonly member: ClientMember
  readonly listener: WarningListener
  end(): void
}

const protections = new WeakMap<object, Protection>()

/** Releases the share of a client that was freed without `unprotect`. */
const freed = new FinalizationRegistry<() => void>((leave) => leave())

/**
 * Protects a client: its accesses are counted and reported, and hot keys are handled as the hub says. It is the same
 * object, with every method unchanged; `unprotect` removes the protection. With `FIREBREAK=off` in the environment
 * nothing is done at all.
 */
export function protect<Client extends object>(client: Client, options: ProtectOptions = {}): Client {
  if (isOffByEnvironment() || protections.has(client)) return client
  const library = libraryOf(client)
  checkProtectOptions(options)
  const { redisClusterId = library.defaultClusterId, shield: ownShield, onWarning, ...shieldOptions } = options
  const listener: WarningListener = { onWarning }
  const agent = shieldOptions.agent ?? `client/${version} ${library.name}`
  const user = ownShield === undefined ? shareShield({ ...shieldOptions, agent }, listener) : undefined
  const shield = ownShield ?? user!.shield
  const { member } = library
  const membership = ClusterClients.join(shield, redisClusterId, member)
  const hooks = library.makeHooks(shield, membership)
  const uninstall = hooks.install()
  const leave = leaving(membership, user, shield)
  freed.register(client, leave, leave)
  protections.set(client, {
    hooks,
    shield,
    cluster: membership.cluster,
    member,
    listener,
    end() {
      uninstall()
      freed.unregister(leave)
      leave()
    },
  })
  return client
}

// Separate from the scope of the client: a closure created there would hold it.
function leaving(membership: Membership, user: ShieldUser | undefined, { trouble }: Shield): () => void {
  return () => {
    trouble.attempt(() => membership.leave())
    trouble.attempt(() => user?.release())
  }
}

/** Removes the hooks; the last client of a shield also closes its link and its own connections. */
export function unprotect(client: object): void {
  protections.get(client)?.end()
  protections.delete(client)
}

/** The shield of a protected client; undefined if it is not protected. */
export function shieldOf(client: object): Shield | undefined {
  return protections.get(client)?.shield
}

/** The shield of the Redis behind a protected client. */
export function clusterOf(client: object): ClusterShield | undefined {
  return protections.get(client)?.cluster
}

/**
 * The value of a hot string key, without a promise, if it is currently in memory: null for a key that does not exist,
 * undefined if only a normal read can tell.
 */
export function peek(client: object, key: string): string | null | undefined {
  const protection = protections.get(client)
  try {
    return protection?.hooks.peek(key)
  } catch (error) {
    protection?.shield.trouble.failed(error)
    return undefined
  }
}

interface Library {
  readonly name: string
  readonly defaultClusterId: string
  readonly member: ClientMember
  makeHooks(shield: Shield, membership: Membership): Hooks
}

function libraryOf(client: object): Library {
  if (client === null || typeof client !== 'object') throw unsupportedClient(client)
  if (isIoredis(client)) {
    return {
      name: 'ioredis',
      defaultClusterId: defaultClusterId(client),
      member: {
        upstream: new IoredisUpstream(client),
        get redis() {
          return toRedis(client as unknown as RedisClient)
        },
        get state() {
          const { status } = client
          return status === 'ready' ? 'ready' : status === 'end' ? 'closed' : 'opening'
        },
      },
      makeHooks: (shield, membership) => new IoredisHooks(client, shield, membership),
    }
  }
  if (isOldIoredis(client)) throw new ClientUnsupportedError('an ioredis 4 client')
  if (!isNodeRedis(client)) throw unsupportedClient(client)
  const upstream = new NodeRedisUpstream(client)
  return {
    name: 'node-redis',
    defaultClusterId: nodeRedisClusterId(client),
    member: {
      upstream,
      get redis() {
        return toRedis(client as unknown as RedisClient)
      },
      get state() {
        if (!client.isOpen) return 'closed'
        return client.isReady === false ? 'opening' : 'ready'
      },
    },
    makeHooks: (shield, membership) =>
      new NodeRedisHooks(client, shield, membership, (connection) => upstream.saw(connection)),
  }
}

/** True for a client of a library that `protect` knows. */
export function isRedisClient(value: unknown): boolean {
  return typeof value === 'object' && value !== null && (isAnyIoredis(value) || isNodeRedis(value))
}

function isIoredis(client: object): client is IoredisClient {
  return isAnyIoredis(client) && !isOldIoredis(client)
}

/** Version 4 has no mode and sends commands differently. */
function isOldIoredis(client: object): boolean {
  return isAnyIoredis(client) && !('mode' in client) && client.isCluster !== true
}

function isAnyIoredis(client: object): client is IoredisClient {
  const shape = client as Partial<IoredisClient & { callBuffer: unknown }>
  return typeof shape.sendCommand === 'function' && typeof shape.callBuffer === 'function'
}
