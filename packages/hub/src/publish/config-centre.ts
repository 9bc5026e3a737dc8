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
    const put = (nodePath: string, text: string) => putNode(client, root, nodePath, text)
    return { name: `zookeeper at ${hosts}`, root, put, close: () => client.close() }
  }
  const endpoints = hosts
    .split(',')
    .map((host) => `http://${host.trim()}`)
    .join(',')
  const client = new EtcdClient({ endpoints, ...access })
  return { name: `etcd at ${hosts}`, root, put: (key, text) => client.put(key, text), close: async () => {} }
}

async function putNode(client: ZooKeeperClient, root: string, path: string, text: string): Promise<void> {
  await client.connect()
  try {
    await client.setData(path, text)
  } catch (error) {
    if (!isZooKeeperError(error, 'NO_NODE')) throw error
    // Made with its text: nobody is to read an empty one. Another hub that was faster fails this, and it is tried again.
    await client.ensure(root)
    await client.create(path, text, 'persistent')
  }
}
