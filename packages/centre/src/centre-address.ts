import type { Runtime } from '@firebreak/core'
import { type ClientTls, readTlsFiles } from './tls-files.ts'

export type CentreKind = 'etcd' | 'zookeeper' | 'consul' | 'nacos'

/** The parts of a config centre's URL. */
export interface CentreAddress {
  readonly kind: CentreKind
  readonly isTls: boolean
  readonly tls: ClientTls
  /** `user:password`, or whatever else the centre uses for authentication. */
  readonly auth: string | undefined
  /** Each with its port. */
  readonly hosts: readonly string[]
  /** The path under which tables are stored. */
  readonly root: string
  readonly parameters: URLSearchParams
}

/** What every centre needs to run. */
export interface CentreMeans {
  readonly runtime: Runtime
  /** False: connections do not keep the process alive. */
  readonly keepsAlive: boolean
}

const defaultRoot = '/firebreak/tables'
const defaultPorts: Record<CentreKind, number> = { etcd: 2379, zookeeper: 2181, consul: 8500, nacos: 8848 }

/** The form of a centre's URL, for error messages. */
export const centreUrlForm =
  'etcd://host:port/root or zookeeper://host:port/root (or consul://, nacos://); append an s to the kind for TLS'

/**
 * Parses `kind://[user:password@]host[:port][,host:port…][/root][?ca=FILE&cert=FILE&key=FILE]`: etcd, zookeeper, consul
 * or nacos, with an `s` appended for TLS with a valid certificate. Undefined if the text is not such a URL.
 */
export function parseCentreUrl(text: string): CentreAddress | undefined {
  const pattern = /^(etcd|zookeeper|consul|nacos)(s?):\/\/(?:([^@/?]+)@)?([^@/?]+)(\/[^?]*)?(?:\?(.*))?$/
  const [, kind, secure, auth, hosts, path = '', query = ''] = pattern.exec(text.trim()) ?? []
  if (kind === undefined || hosts === undefined) return undefined
  const port = defaultPorts[kind as CentreKind]
  const places = hosts.split(',').map((host) => placeOf(host.trim(), port))
  if (places.some((place) => place === undefined)) return undefined
  const parameters = new URLSearchParams(query)
  return {
    kind: kind as CentreKind,
    isTls: secure === 's',
    tls: readTlsFiles(parameters),
    auth: auth === undefined ? undefined : decodeURIComponent(auth),
    hosts: places as string[],
    root: path.replace(/\/+$/, '') || defaultRoot,
    parameters,
  }
}

function placeOf(host: string, defaultPort: number): string | undefined {
  const [, name, port = defaultPort] = /^(\[[\da-f:.]+\]|[^:[\]\s]+)(?::(\d{1,5}))?$/i.exec(host) ?? []
  return name === undefined || Number(port) < 1 || Number(port) > 65_535 ? undefined : `${name}:${port}`
}
