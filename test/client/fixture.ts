import { type ProtectOptions, protect, shieldOf, unprotect } from '@firebreak/client'
import { TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'

/** What the tests set of a client. */
export interface ClientOptions {
  readonly port?: number
  readonly db?: number
  readonly keyPrefix?: string
  readonly enableAutoPipelining?: boolean
  readonly username?: string
  readonly password?: string
}

/** A hub, a plain client and protected clients of one server; `close` ends them all. */
export class Fixture {
  readonly hub: TestHub
  readonly plain: Redis
  readonly #port: number
  readonly #clients: Redis[] = []
  readonly #closers: (() => Promise<unknown>)[] = []

  private constructor(hub: TestHub, port: number) {
    this.hub = hub
    this.#port = port
    this.plain = new Redis(port)
  }

  static async start(port: number): Promise<Fixture> {
    const fixture = new Fixture(await TestHub.start(), port)
    await fixture.plain.flushall()
    return fixture
  }

  /** Has something closed before the hub is. */
  onClose(close: () => Promise<unknown>): void {
    this.#closers.push(close)
  }

  /** A protected client that the hub knows; `port` for one behind a proxy. */
  async client(options: ProtectOptions = {}, redisOptions: ClientOptions = {}): Promise<Redis> {
    const { port = this.#port, ...rest } = redisOptions
    return this.adopt(new Redis(port, rest), options)
  }

  async adopt<Client extends object>(client: Client, options: ProtectOptions = {}): Promise<Client> {
    protect(client, {
      hubs: [this.hub.url],
      serviceId: 'shop',
      redisClusterId: 'main',
      tableFile: false,
      // Most tests count what Redis is asked.
      canaryMs: 0,
      onWarning: () => {},
      ...options,
    })
    this.#clients.push(client as unknown as Redis)
    await waitFor(() => shieldOf(client)?.isConnected, { what: 'the hub link' })
    return client
  }

  /** Makes a key hot and waits until its GET is answered from memory. */
  async makeHot(
    redis: { get(key: string): Promise<unknown> },
    key: string,
    read: () => Promise<unknown> = () => redis.get(key),
  ): Promise<void> {
    this.hub.heat('main', [key])
    await this.isServed(read)
  }

  /** Waits until `read` reaches no Redis. */
  async isServed(read: () => Promise<unknown>): Promise<void> {
    await waitFor(
      async () => {
        await read()
        const before = await this.processed()
        await read()
        return (await this.processed()) === before
      },
      { what: 'a read to be answered from memory' },
    )
  }

  /** Data commands that Redis has run; those of connections and watchers do not count. */
  async processed(): Promise<number> {
    const info = await this.plain.info('commandstats')
    let sum = 0
    for (const [, name, calls] of info.matchAll(/cmdstat_([^:]+):calls=(\d+)/g)) {
      if (!/^(info|ping|hello|client|select|command|config|multi|exec|auth|cluster|pttl)/.test(name!))
        sum += Number(calls)
    }
    return sum
  }

  async calls(name: string): Promise<number> {
    const info = await this.plain.info('commandstats')
    return Number(info.match(new RegExp(`cmdstat_${name}:calls=(\\d+)`))?.[1] ?? 0)
  }

  async close(): Promise<void> {
    for (const client of this.#clients) {
      unprotect(client)
      // node-redis 5 does not like to be closed twice.
      const { isOpen, destroy } = client as { isOpen?: boolean; destroy?(): void }
      if (isOpen !== false) (client.disconnect ?? destroy).call(client)
    }
    this.plain.disconnect()
    await Promise.all(this.#closers.map((close) => close()))
    await this.hub.kill()
  }
}
