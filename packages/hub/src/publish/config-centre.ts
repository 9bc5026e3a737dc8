import { EtcdClient, isZooKeeperError, ZooKeeperClient } from '@firebreak/ids'
import { HubConfigError } from '../errors.ts'

/** Where a fleet keeps its settings: texts under paths. */
export interface ConfigCentre {
  /** Its kind and addresses, for alarms and logs. */
  readonly name: string
  /** The path below which tables stand. */
  readonly root: string
  put(path: string, text: string): Promise<void>
  close(): Promise<void>
}

const defaultRoot = '/firebreak/tables'

/** Makes the centre that a URL names: `etcd://` or `zookeeper://`, `[user:password@]host:port[,host:port…][/root]`. */
export function openConfigCentre(url: string): ConfigCentre {
  const [, kind, auth, hosts, path = ''] = /^(etcd|zookeeper):\/\/(?:([^@/]+)@)?([^@/]+)(\/.*)?$/.exec(url) ?? []
  // The URL may hold a password: it must not be in the sentence.
  if (kind === undefined || hosts === undefined) {
    throw new HubConfigError('publishTo', 'publishTo must be etcd://host:port/root or zookeeper://host:port/root')
  }
  const root = path.replace(/\/+$/, '') || defaultRoot
  const access = auth === undefined ? {} : { auth: decodeURIComponent(auth) }
  if (kind === 'zookeeper') {
    const client = new ZooKeeperClient({ servers: hosts, ...access })
    return new ZooKeeperCentre(`zookeeper at ${hosts}`, root, client)
  }
  const endpoints = hosts
    .split(',')
    .map((host) => `http://${host.trim()}`)
    .join(',')
  return new EtcdCentre(`etcd at ${hosts}`, root, new EtcdClient({ endpoints, ...access }))
}

class EtcdCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  readonly #client: EtcdClient

  constructor(name: string, root: string, client: EtcdClient) {
    this.name = name
    this.root = root
    this.#client = client
  }

  put(path: string, text: string): Promise<void> {
    return this.#client.put(path, text)
  }

  async close(): Promise<void> {}
}

class ZooKeeperCentre implements ConfigCentre {
  readonly name: string
  readonly root: string
  readonly #client: ZooKeeperClient

  constructor(name: string, root: string, client: ZooKeeperClient) {
    this.name = name
    this.root = root
    this.#client = client
  }

  async put(path: string, text: string): Promise<void> {
    await this.#client.connect()
    try {
      await this.#client.setData(path, text)
    } catch (error) {
      if (!isZooKeeperError(error, 'NO_NODE')) throw error
      // Made with its text: nobody is to read an empty one. Another hub that was faster fails this, and it is tried again.
      await this.#client.ensure(this.root)
      await this.#client.create(path, text, 'persistent')
    }
  }

  close(): Promise<void> {
    return this.#client.close()
  }
}
