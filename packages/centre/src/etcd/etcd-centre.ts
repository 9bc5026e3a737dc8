import type { CentreWatch, ConfigCentre, WatchListener } from '../centre.ts'
import type { CentreAddress, CentreMeans } from '../centre-address.ts'
import { WatchLoop } from '../watch/watch-loop.ts'
import { EtcdClient } from './etcd-client.ts'

/** A silently dead connection is noticed after this time: the watch is reopened, starting with a read. */
const watchMs = 15_000

/** etcd as a config centre: a path is a key. */
export class EtcdCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  /** Below etcd's 1.5 MiB for a request, in which a text is a third larger. */
  readonly maxBytes = 1_000_000
  readonly #client: EtcdClient
  readonly #means: CentreMeans

  constructor(address: CentreAddress, means: CentreMeans) {
    const { hosts, auth, tls, isTls } = address
    this.name = `etcd at ${hosts.join(',')}`
    this.root = address.root
    this.#means = means
    this.#client = new EtcdClient({
      endpoints: hosts.map((host) => `${isTls ? 'https' : 'http'}://${host}`).join(','),
      ...means,
      tls,
      ...(auth !== undefined && { auth }),
    })
  }

  async read(path: string): Promise<string | undefined> {
    return (await this.#client.get(path))?.value
  }

  write(path: string, text: string): Promise<void> {
    return this.#client.put(path, text)
  }

  watch(path: string, listener: WatchListener): CentreWatch {
    return new WatchLoop(listener, this.#means.runtime, async ({ signal, deliver }) => {
      const { entry, revision } = await this.#client.read(path)
      deliver(entry?.value)
      await this.#client.watch(path, revision + 1n, { forMs: watchMs, signal }, deliver)
    })
  }

  async close(): Promise<void> {
    this.#client.close()
  }
}
