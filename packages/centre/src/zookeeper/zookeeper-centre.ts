import type { CentreWatch, ConfigCentre, WatchListener } from '../centre.ts'
import type { CentreAddress, CentreMeans } from '../centre-address.ts'
import { WatchLoop } from '../watch/watch-loop.ts'
import { isZooKeeperError } from './operations.ts'
import { ZooKeeperClient } from './zookeeper-client.ts'

/** ZooKeeper as a config centre: a path is a node. */
export class ZooKeeperCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  /** The maximum size of a node (`jute.maxbuffer`), minus the frame. */
  readonly maxBytes = 1_000_000
  readonly #client: ZooKeeperClient
  readonly #means: CentreMeans

  constructor(address: CentreAddress, means: CentreMeans) {
    const { hosts, auth, isTls, tls } = address
    this.name = `zookeeper at ${hosts.join(',')}`
    this.root = address.root
    this.#means = means
    const servers = `${isTls ? 'zookeepers://' : ''}${hosts.join(',')}`
    this.#client = new ZooKeeperClient({ servers, ...means, tls, ...(auth !== undefined && { auth }) })
  }

  async read(path: string): Promise<string | undefined> {
    await this.#client.connect()
    return (await this.#client.getData(path))?.data
  }

  async write(path: string, text: string): Promise<void> {
    await this.#client.connect()
    try {
      await this.#client.setData(path, text)
    } catch (error) {
      if (!isZooKeeperError(error, 'NO_NODE')) throw error
      // Created with its text, so that nobody reads an empty one.
      await this.#client.ensure(path.slice(0, path.lastIndexOf('/')))
      await this.#client.create(path, text, 'persistent')
    }
  }

  watch(path: string, listener: WatchListener): CentreWatch {
    return new WatchLoop(listener, this.#means.runtime, async ({ signal, deliver }) => {
      await this.#client.connect()
      let wake = () => {}
      let isLost = false
      const changed = new Promise<void>((resolve) => {
        wake = resolve
      })
      // A new connection has no watches, and the session is pinged, so a dead connection is always noticed.
      const forget = this.#client.onSession((event) => {
        if (event !== 'disconnected') return
        isLost = true
        wake()
      })
      signal.addEventListener('abort', wake)
      try {
        const { data, unwatch } = await this.#client.readAndWatch(path, wake)
        deliver(data)
        await changed
        unwatch()
        if (isLost) throw new Error('the connection to ZooKeeper was lost')
      } finally {
        forget()
        signal.removeEventListener('abort', wake)
      }
    })
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}
