import { join } from 'node:path'
import type { ProxyOptions } from '@firebreak/proxy'
import {
  FakedClock,
  FaultProxy,
  freePorts,
  type GuardedChild,
  type RedisServer,
  redisCli,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'

// Acknowledged data is on disk: a killed server comes back with everything that anybody was told.
const durable = ['--appendonly', 'yes', '--appendfsync', 'always', '--repl-diskless-sync-delay', '0']
const rules = [
  { id: 'hot', prefix: 'hot:', threshold: 30, windowMs: 1000, minHoldMs: 2000, strategy: 'LocalCache' },
  { id: 'copy', prefix: 'copy:', threshold: 30, windowMs: 1000, minHoldMs: 2000, strategy: 'RedundantKeys' },
]

/** A busy machine may take this long to start a program or copy the data. */
const startMs = 60_000

/** A program that is killed and started again on its old port. */
export class Restartable {
  readonly #start: () => Promise<GuardedChild>
  #child: GuardedChild | undefined

  constructor(start: () => Promise<GuardedChild>) {
    this.#start = start
  }

  get child(): GuardedChild {
    return this.#child!
  }

  async start(): Promise<void> {
    this.#child = await this.#start()
  }

  async kill(): Promise<void> {
    this.child.signal('SIGKILL')
    await this.child.exited
  }
}

/** The protected Redis: a server with its data on disk, and its replacement. */
export class DataServer {
  #server: RedisServer

  private constructor(server: RedisServer) {
    this.#server = server
  }

  static async start(): Promise<DataServer> {
    return new DataServer(await startRedis({ args: durable }))
  }

  get server(): RedisServer {
    return this.#server
  }

  async kill(): Promise<void> {
    this.#server.child.signal('SIGKILL')
    await this.#server.child.exited
  }

  async restart(): Promise<void> {
    // Not with its original arguments: it may have been a replica then.
    this.#server = await this.#server.restart(durable)
  }

  /** Another server takes over with every acknowledged write, as after an orderly failover; the old one is gone. */
  async failOver(): Promise<void> {
    const old = this.#server
    const next = await startRedis({ args: [...durable, '--replicaof', '127.0.0.1', String(old.port)] })
    const replicated = async () => {
      const [master, replica] = await Promise.all([old, next].map(({ cli }) => cli('INFO', 'replication')))
      const offset = (text: string) => /^master_repl_offset:(\d+)/m.exec(text)![1]
      return replica!.includes('master_link_status:up') && offset(master!) === offset(replica!)
    }
    await waitFor(async () => (await next.cli('INFO', 'replication')).includes('master_link_status:up'), {
      timeoutMs: startMs,
    })
    await old.cli('CLIENT', 'PAUSE', String(startMs), 'WRITE')
    await waitFor(replicated, { timeoutMs: startMs })
    await next.cli('REPLICAOF', 'NO', 'ONE')
    this.#server = next
    old.child.signal('SIGKILL')
    await old.child.exited
  }
}

/** Everything that runs: two Redis servers, two hubs, a proxy, and a link to each of them that can be disturbed. */
export class Stage {
  readonly data: DataServer
  readonly store: DataServer
  /** The link of applications to the protected Redis. */
  readonly dataLink: FaultProxy
  /** The link of the proxy to it. */
  readonly proxyLink: FaultProxy
  /** The link of each hub to the store. */
  readonly storeLinks: readonly FaultProxy[]
  readonly hubs: readonly Restartable[]
  readonly hubUrls: readonly string[]
  readonly hubClock: FakedClock
  readonly proxy: Restartable
  readonly proxyPort: number

  private constructor(parts: Omit<Stage, 'hubUrls' | 'stop'> & { readonly hubPorts: readonly number[] }) {
    this.data = parts.data
    this.store = parts.store
    this.dataLink = parts.dataLink
    this.proxyLink = parts.proxyLink
    this.storeLinks = parts.storeLinks
    this.hubs = parts.hubs
    this.hubClock = parts.hubClock
    this.proxy = parts.proxy
    this.proxyPort = parts.proxyPort
    this.hubUrls = parts.hubPorts.map((port) => `http://127.0.0.1:${port}`)
  }

  static async start(): Promise<Stage> {
    const [data, store] = await Promise.all([DataServer.start(), DataServer.start()])
    const link = (server: RedisServer) => FaultProxy.start(server.port)
    const [dataLink, proxyLink] = [await link(data.server), await link(data.server)]
    const storeLinks = [await link(store.server), await link(store.server)]
    const [first, second, proxyPort] = (await freePorts(3)) as [number, number, number]
    const hubPorts = [first, second]
    const hubClock = new FakedClock()
    const hubs = hubPorts.map((port, index) => {
      const storeUrl = `redis://127.0.0.1:${storeLinks[index]!.port}`
      const options = JSON.stringify({ hubId: `hub-${index}`, port, storeUrl, initialRules: rules, logLevel: 'fatal' })
      const file = new URL('../hub/hub-process.ts', import.meta.url)
      return new Restartable(async () => {
        const child = index === 0 ? hubClock.startSource(file, [options]) : startSource(file, [options])
        await child.printed(/listening/, startMs)
        return child
      })
    })
    const folder = temporaryFolder('chaos')
    const options: ProxyOptions = {
      port: proxyPort,
      upstream: `127.0.0.1:${proxyLink.port}`,
      drainMs: 1,
      shield: {
        hubs: hubPorts.map((port) => `http://127.0.0.1:${port}`),
        serviceId: 'shop',
        redisClusterId: 'main',
        instanceId: 'proxy',
        tableFile: join(folder, 'table.json'),
        diskTier: { path: join(folder, 'disk'), retryAfterMs: 500 },
      },
    }
    const proxy = new Restartable(async () => {
      const child = startSource(new URL('../proxy/proxy-process.ts', import.meta.url), [JSON.stringify(options)])
      await child.printed(/listening/, startMs)
      return child
    })
    await Promise.all([...hubs, proxy].map((program) => program.start()))
    return new Stage({ data, store, dataLink, proxyLink, storeLinks, hubs, hubPorts, hubClock, proxy, proxyPort })
  }

  async stop(): Promise<void> {
    await Promise.all([...this.hubs, this.proxy].map(({ child }) => child.stop(2000)))
    for (const link of [this.dataLink, this.proxyLink, ...this.storeLinks]) await link.close()
    await Promise.all([this.data, this.store].map(({ server }) => server.stop()))
  }
}

/** Our keys next to those of the application: copies and their companion keys. */
export async function copyNames(port: number): Promise<string[]> {
  const names = (await redisCli(port, 'KEYS', '*')).split('\n')
  return names.filter((name) => /:firebreak-(marker|owner|refresher)$|^copy:\d+_\d+$/.test(name))
}
