import { portBounds } from '@firebreak/core/settings'
import type { IdsServerOptions } from '@firebreak/hub'
import { type NodeAddress, ownIp, parseAddress } from '@firebreak/ids'
import { type CommandIo, UsageError } from '../../command/command.ts'
import { CommandSettings } from '../../flags/command-settings.ts'
import { idsSettings } from './ids-settings.ts'

/** Where worker ids come from. */
export type RegistryChoice =
  | { readonly kind: 'zookeeper' | 'etcd' | 'redis'; readonly servers: string }
  | { readonly kind: 'static'; readonly workerId: number }
  | { readonly kind: 'none' }

/** The options of `firebreak ids`. */
export interface IdsOptions {
  readonly host: string
  readonly port: number
  readonly respPort: number
  readonly token: string | undefined
  /** What strangers may take of the two ports. */
  readonly bounds: Pick<IdsServerOptions, 'connections' | 'respConnections'>
  /** Where alarms are shown. */
  readonly hub: { readonly url: string; readonly token: string | undefined } | undefined
  readonly databases: readonly string[]
  readonly tags: readonly { readonly name: string; readonly step: number }[]
  readonly registry: RegistryChoice
  readonly root: string | undefined
  readonly cacheFile: string | undefined
  readonly epochMs: number | undefined
  readonly peerThresholdMs: number | undefined
  /** The address in the registry, for the actual HTTP port. */
  address(port: number): NodeAddress
}

interface IdsValues {
  readonly host?: string
  readonly port?: number
  readonly respPort?: number
  readonly token?: string
  readonly hub?: string
  readonly hubToken?: string
  readonly database?: readonly string[]
  readonly tag?: readonly string[]
  readonly zookeeper?: string
  readonly etcd?: string
  readonly redis?: string
  readonly workerId?: number
  readonly root?: string
  readonly advertise?: string
  readonly cacheFile?: string
  readonly epoch?: number
  readonly peerThreshold?: number
  readonly maxRespConnections?: number
  readonly respIdleTimeoutMs?: number
  readonly respAuthTimeoutMs?: number
}

/** Resolves flags, variables and the settings file to the command's options. */
export function idsOptionsOf(args: readonly string[], io: Pick<CommandIo, 'env' | 'stderr'>): IdsOptions {
  const settings = CommandSettings.read(idsSettings, args, io)
  const values = settings.values as IdsValues
  const { host = '127.0.0.1', advertise } = values
  const fixed = advertise === undefined ? undefined : parseAddress(advertise)
  if (advertise !== undefined && fixed === undefined) {
    throw new UsageError(`${settings.placeOf('advertise')} is "${advertise}"; it must be ip:port`)
  }
  return {
    host,
    port: values.port ?? 8070,
    respPort: values.respPort ?? 8071,
    token: values.token,
    bounds: boundsOf(values),
    hub: values.hub === undefined ? undefined : { url: hubOf(values.hub, settings), token: values.hubToken },
    databases: values.database ?? ['sqlite:firebreak-ids.db'],
    tags: (values.tag ?? []).map((tag) => parseTag(tag, settings.placeOf('tag'))),
    registry: registryOf(values),
    root: values.root,
    cacheFile: values.cacheFile,
    epochMs: values.epoch,
    peerThresholdMs: values.peerThreshold,
    address: (port) => fixed ?? { ip: ['0.0.0.0', '::'].includes(host) ? ownIp() : host, port },
  }
}

function boundsOf(values: IdsValues): IdsOptions['bounds'] {
  const { bounds } = portBounds({ ...values })
  const { maxRespConnections, respIdleTimeoutMs, respAuthTimeoutMs } = values
  return {
    ...(bounds !== undefined && { connections: bounds }),
    respConnections: {
      ...(maxRespConnections !== undefined && { maxConnections: maxRespConnections }),
      ...(respIdleTimeoutMs !== undefined && { idleTimeoutMs: respIdleTimeoutMs }),
      ...(respAuthTimeoutMs !== undefined && { authTimeoutMs: respAuthTimeoutMs }),
    },
  }
}

/** The first of several: one board is enough. */
function hubOf(text: string, settings: CommandSettings): string {
  const url = text.split(',')[0]!.trim()
  if (/^https?:$/.test(URL.parse(url)?.protocol ?? '')) return url
  throw new UsageError(`${settings.placeOf('hub')} is "${text}"; it must be an http or https URL`)
}

function registryOf(values: IdsValues): RegistryChoice {
  const choices: RegistryChoice[] = (['zookeeper', 'etcd', 'redis'] as const).flatMap((kind) => {
    const servers = values[kind]
    return servers === undefined ? [] : [{ kind, servers }]
  })
  if (values.workerId !== undefined) choices.push({ kind: 'static', workerId: values.workerId })
  if (choices.length > 1) throw new UsageError('give only one of --zookeeper, --etcd, --redis and --worker-id')
  return choices[0] ?? { kind: 'none' }
}

function parseTag(text: string, place: string): { name: string; step: number } {
  const match = text.match(/^(.+?)(?::(\d+))?$/)
  if (match === null) throw new UsageError(`${place} is "${text}"; it must be NAME or NAME:STEP`)
  return { name: match[1]!, step: Number(match[2] ?? 1000) }
}
