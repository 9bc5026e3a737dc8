import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { TestHub, waitFor } from '@firebreak/testkit'
import { RawClient } from './raw-client.ts'

/** A hub, and the proxies and clients of one test that listen to it; `close` ends them all. */
export class ShieldedProxies {
  readonly hub: TestHub
  readonly #closers: (() => unknown)[] = []

  private constructor(hub: TestHub) {
    this.hub = hub
  }

  static async open(): Promise<ShieldedProxies> {
    return new ShieldedProxies(await TestHub.start())
  }

  /** Starts a proxy, and waits until the hub knows each of its threads. */
  async start(upstream: string, options: Partial<ProxyOptions> = {}): Promise<FirebreakProxy> {
    const { hub } = this
    const known = hub.hellos.length
    const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
    const proxy = await startProxy({
      upstream,
      port: 0,
      drainMs: 1,
      ...options,
      shield: { ...shield, ...options.shield },
    })
    this.onClose(() => proxy.close())
    await waitFor(() => hub.hellos.length >= known + (options.workers ?? 1))
    return proxy
  }

  async connect({ port }: FirebreakProxy): Promise<RawClient> {
    const client = await RawClient.connect(port)
    this.onClose(() => client.close())
    return client
  }

  onClose(close: () => unknown): void {
    this.#closers.push(close)
  }

  async close(): Promise<void> {
    for (const close of this.#closers.splice(0).reverse()) await close()
    await this.hub.kill()
  }
}
