import { type ProtectOptions, peek } from '@firebreak/client'
import { type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type FaultProxy, type RedisSentinel, waitFor } from '@firebreak/testkit'
import { Cluster, Redis } from 'ioredis'
import type { Fixture } from '../client/fixture.ts'
import { watchedThrough } from './watched-through.ts'

/** What the suites ask of a protected client. */
export interface Guarded {
  get(key: string): Promise<string | null>
  set(key: string, value: string): Promise<unknown>
  /** The value that memory would answer now, null for a missing key, undefined if memory has nothing. */
  peek(key: string): Promise<string | null | undefined>
}

interface Address {
  readonly host: string
  readonly port: number
}

/** A way in which an application is protected. Firebreak's promises hold for each of them. */
export interface Way {
  readonly name: string
  /** A client of the server at a port. */
  client(fixture: Fixture, port: number, options?: ProtectOptions): Promise<Guarded>
  /** The requested number of clients, as in one application server. */
  clients(fixture: Fixture, port: number, count: number): Promise<Guarded[]>
  /** As `client`; the faults only affect the connection that receives changes. */
  watchedThrough(fixture: Fixture, port: number, faults: FaultProxy, options?: ProtectOptions): Promise<Guarded>
  cluster(fixture: Fixture, addresses: readonly Address[]): Promise<Guarded>
  sentinel(fixture: Fixture, sentinel: RedisSentinel): Promise<Guarded>
}

const guardedByHooks = (client: Redis | Cluster): Guarded => {
  client.on('error', () => {})
  return {
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    peek: async (key) => peek(client, key),
  }
}

const hooks: Way = {
  name: 'an application with hooks',
  client: async (fixture, port, options) => guardedByHooks(await fixture.client(options, { port })),
  clients: (fixture, port, count) =>
    Promise.all(
      Array.from({ length: count }, (_, index) => hooks.client(fixture, port, { instanceId: `reader-${index}` })),
    ),
  watchedThrough: async (fixture, port, faults, options) =>
    guardedByHooks(await watchedThrough(fixture, port, faults, options)),
  cluster: async (fixture, addresses) => {
    const client = new Cluster([...addresses])
    client.on('error', () => {})
    return guardedByHooks(await fixture.adopt(client))
  },
  sentinel: async (fixture, { sentinels, name }) => {
    const client = new Redis({ sentinels: [...sentinels], name })
    client.on('error', () => {})
    return guardedByHooks(await fixture.adopt(client))
  },
}

async function throughProxy(
  fixture: Fixture,
  options: Omit<ProxyOptions, 'shield'>,
  shield: ProtectOptions = {},
  count = 1,
): Promise<Guarded[]> {
  const { hub } = fixture
  const known = hub.hellos.length
  const proxy = await startProxy({
    port: 0,
    drainMs: 1,
    ...options,
    shield: {
      hubs: [hub.url],
      serviceId: 'shop',
      redisClusterId: 'main',
      tableFile: false,
      canaryMs: 0,
      onWarning: () => {},
      ...shield,
    },
  })
  await waitFor(() => hub.hellos.length > known, { what: 'the hub link' })
  // A connection of its own: on the client's, a request waits for the replies to all earlier ones.
  const [asker, ...clients] = Array.from({ length: count + 1 }, () => new Redis(proxy.port))
  for (const client of [asker!, ...clients]) client.on('error', () => {})
  fixture.onClose(async () => {
    for (const client of [asker!, ...clients]) client.disconnect()
    await proxy.close()
  })
  const peekAt = async (key: string) => ((await asker!.call('FIREBREAK', 'PEEK', key)) as (string | null)[])[0]
  return clients.map((client) => ({
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    peek: peekAt,
  }))
}

const listOf = (addresses: readonly Address[]) => addresses.map(({ host, port }) => `${host}:${port}`).join(',')
const only = async (clients: Promise<Guarded[]>) => (await clients)[0]!

const proxy: Way = {
  name: 'an application behind the proxy',
  client: (fixture, port, options) => only(throughProxy(fixture, { upstream: `127.0.0.1:${port}` }, options)),
  clients: (fixture, port, count) => throughProxy(fixture, { upstream: `127.0.0.1:${port}` }, {}, count),
  watchedThrough: (fixture, _port, faults, options) => {
    faults.faults.onlyTracking = true
    return only(throughProxy(fixture, { upstream: `127.0.0.1:${faults.port}` }, options))
  },
  cluster: (fixture, addresses) => only(throughProxy(fixture, { upstream: listOf(addresses) })),
  sentinel: (fixture, { sentinels, name }) =>
    only(throughProxy(fixture, { upstream: listOf(sentinels), sentinelGroup: name })),
}

/** Every way, for `describe.each`. */
export const ways: readonly Way[] = [hooks, proxy]
