import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type RedisCluster, startCluster } from '@firebreak/testkit'
import { RawClient } from './raw-client.ts'

/** A real cluster of three masters behind a proxy, and the clients of one test; `clear` ends those. */
export class ClusterStage {
  readonly cluster: RedisCluster
  readonly proxy: FirebreakProxy
  #clients: RawClient[] = []

  private constructor(cluster: RedisCluster, proxy: FirebreakProxy) {
    this.cluster = cluster
    this.proxy = proxy
  }

  static async open(args: readonly string[], options: Partial<ProxyOptions> = {}): Promise<ClusterStage> {
    const cluster = await startCluster({ masters: 3, args })
    const upstream = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
    return new ClusterStage(cluster, await startProxy({ upstream, port: 0, drainMs: 1, ...options }))
  }

  async connect(port = this.proxy.port): Promise<RawClient> {
    const client = await RawClient.connect(port)
    this.#clients.push(client)
    return client
  }

  async clear(): Promise<void> {
    for (const client of this.#clients.splice(0)) await client.close()
  }

  async close(): Promise<void> {
    await this.proxy.close()
    await this.cluster.stop()
  }
}
