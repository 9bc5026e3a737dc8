import type { Socket } from 'node:net'
import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { FakeRedis } from './fake-redis.ts'
import { RawClient } from './raw-client.ts'

/** A real Redis, and the proxies and clients of one test before it; `clear` ends those. */
export class ProxyStage {
  readonly server: RedisServer
  /** A client of the server itself. */
  readonly direct: RawClient
  #closers: (() => unknown)[] = []

  private constructor(server: RedisServer, direct: RawClient) {
    this.server = server
    this.direct = direct
  }

  static async open(): Promise<ProxyStage> {
    const server = await startRedis()
    return new ProxyStage(server, await RawClient.connect(server.port))
  }

  async start(options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
    const proxy = await startProxy({ upstream: this.server.url, port: 0, drainMs: 1, ...options })
    this.onClear(() => proxy.close())
    return proxy
  }

  async client({ port }: Pick<FirebreakProxy, 'port'>): Promise<RawClient> {
    const client = await RawClient.connect(port)
    this.onClear(() => client.close())
    return client
  }

  async fake(answer: (words: string[], socket: Socket) => string | undefined): Promise<FakeRedis> {
    const fake = await FakeRedis.start(answer)
    this.onClear(() => fake.close())
    return fake
  }

  onClear(close: () => unknown): void {
    this.#closers.push(close)
  }

  async clear(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
  }

  async close(): Promise<void> {
    await this.direct.close()
    await this.server.stop()
  }
}

/** Lets a proxy do what it can: it answers so many requests by itself meanwhile. */
export async function letWork(redis: RawClient, rounds = 1500): Promise<void> {
  for (let round = 0; round < rounds; round++) await redis.ask('FIREBREAK', 'HELP')
}
