import { InvalidOptionError, type Runtime, systemRuntime } from '@firebreak/core'
import type { ConfigCentre } from './centre.ts'
import {
  type CentreAddress,
  type CentreKind,
  type CentreMeans,
  centreUrlForm,
  parseCentreUrl,
} from './centre-address.ts'
import { ConsulCentre } from './consul/consul-centre.ts'
import { EtcdCentre } from './etcd/etcd-centre.ts'
import { NacosCentre } from './nacos/nacos-centre.ts'
import { ZooKeeperCentre } from './zookeeper/zookeeper-centre.ts'

/** How a centre is opened. */
export interface OpenCentreOptions {
  /** The option that the URL comes from, for errors. @default 'url' */
  readonly option?: string
  /** False: connections do not keep the process alive. @default true */
  readonly keepsAlive?: boolean
  /** @default the process' own */
  readonly runtime?: Runtime
}

const centres: Record<CentreKind, new (address: CentreAddress, means: CentreMeans) => ConfigCentre> = {
  etcd: EtcdCentre,
  zookeeper: ZooKeeperCentre,
  consul: ConsulCentre,
  nacos: NacosCentre,
}

/** Opens the centre that a URL names (see `parseCentreUrl`). Nothing connects before its first use. */
export function openCentre(url: string, options: OpenCentreOptions = {}): ConfigCentre {
  const { option = 'url', keepsAlive = true, runtime = systemRuntime } = options
  const address = parseCentreUrl(url)
  // The URL may contain a password, which must not be in the message.
  if (address === undefined) throw new InvalidOptionError(option, `${url.split(':')[0]}:…`, centreUrlForm)
  return new centres[address.kind](address, { runtime, keepsAlive })
}
