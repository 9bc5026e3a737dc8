import { parseArgs } from 'node:util'
import { type NodeAddress, ownIp, parseAddress } from '@firebreak/ids'
import { type CommandIo, UsageError } from '../../command/command.ts'

/** Where worker ids come from. */
export type RegistryChoice =
  | { readonly kind: 'zookeeper' | 'etcd' | 'redis'; readonly servers: string }
  | { readonly kind: 'static'; readonly workerId: number }
  | { readonly kind: 'none' }

/** What the command line and the environment say. */
export interface IdsFlags {
  readonly host: string
  readonly port: number
  readonly respPort: number
  readonly token: string | undefined
  readonly databases: readonly string[]
  readonly tags: readonly { readonly name: string; readonly step: number }[]
  readonly registry: RegistryChoice
  readonly root: string | undefined
  readonly cacheFile: string | undefined
  readonly epochMs: number | undefined
  readonly peerThresholdMs: number | undefined
  /** The address in the registry, for the port that HTTP really got. */
  address(port: number): NodeAddress
}

/** Flag → env twin. */
const twins = {
  host: 'FIREBREAK_IDS_HOST',
  port: 'FIREBREAK_IDS_PORT',
  'resp-port': 'FIREBREAK_IDS_RESP_PORT',
  token: 'FIREBREAK_IDS_TOKEN',
  database: 'FIREBREAK_IDS_DATABASE',
  tag: 'FIREBREAK_IDS_TAG',
  zookeeper: 'FIREBREAK_IDS_ZOOKEEPER',
  etcd: 'FIREBREAK_IDS_ETCD',
  redis: 'FIREBREAK_IDS_REDIS',
  'worker-id': 'FIREBREAK_IDS_WORKER_ID',
  root: 'FIREBREAK_IDS_ROOT',
  advertise: 'FIREBREAK_IDS_ADVERTISE',
  'cache-file': 'FIREBREAK_IDS_CACHE_FILE',
  epoch: 'FIREBREAK_IDS_EPOCH',
  'peer-threshold': 'FIREBREAK_IDS_PEER_THRESHOLD',
} as const

/** Every long flag. */
export const flagNames: readonly string[] = Object.keys(twins)

/** Reads the flags; the environment stands behind each. */
export function parseIdsFlags(args: readonly string[], env: CommandIo['env']): IdsFlags {
  const options = Object.fromEntries(
    Object.keys(twins).map((name) => [name, { type: 'string', multiple: true }] as const),
  )
  const { values } = parseArgs({ args: [...args], options })
  const all = (name: keyof typeof twins): string[] =>
    (values[name] as string[] | undefined) ?? (env[twins[name]]?.split(',') ?? []).filter((part) => part !== '')
  const one = (name: keyof typeof twins): string | undefined =>
    (values[name] as string[] | undefined)?.at(-1) ?? (env[twins[name]] === '' ? undefined : env[twins[name]])
  const number = (name: keyof typeof twins, max: number): number | undefined => {
    const text = one(name)
    if (text === undefined) return undefined
    if (!/^\d{1,15}$/.test(text) || Number(text) > max) {
      throw new UsageError(`--${name} is "${text}"; it must be a whole number from 0 to ${max}`)
    }
    return Number(text)
  }
  const host = one('host') ?? '127.0.0.1'
  const advertised = one('advertise')
  const fixed = advertised === undefined ? undefined : parseAddress(advertised)
  if (advertised !== undefined && fixed === undefined) {
    throw new UsageError(`--advertise is "${advertised}"; it must be ip:port`)
  }
  return {
    host,
    port: number('port', 65_535) ?? 8070,
    respPort: number('resp-port', 65_535) ?? 8071,
    token: one('token'),
    databases: all('database').length > 0 ? all('database') : ['sqlite:firebreak-ids.db'],
    tags: all('tag').map(parseTag),
    registry: registryOf(one, number),
    root: one('root'),
    cacheFile: one('cache-file'),
    epochMs: number('epoch', Number.MAX_SAFE_INTEGER),
    peerThresholdMs: number('peer-threshold', 86_400_000),
    address: (port) => fixed ?? { ip: ['0.0.0.0', '::'].includes(host) ? ownIp() : host, port },
  }
}

function registryOf(
  one: (name: 'zookeeper' | 'etcd' | 'redis') => string | undefined,
  number: (name: 'worker-id', max: number) => number | undefined,
): RegistryChoice {
  const choices: RegistryChoice[] = (['zookeeper', 'etcd', 'redis'] as const).flatMap((kind) => {
    const servers = one(kind)
    return servers === undefined ? [] : [{ kind, servers }]
  })
  const workerId = number('worker-id', 1023)
  if (workerId !== undefined) choices.push({ kind: 'static', workerId })
  if (choices.length > 1) throw new UsageError('give one of --zookeeper, --etcd, --redis and --worker-id')
  return choices[0] ?? { kind: 'none' }
}

function parseTag(text: string): { name: string; step: number } {
  const match = text.match(/^(.+?)(?::(\d+))?$/)
  if (match === null) throw new UsageError(`--tag is "${text}"; it must be NAME or NAME:STEP`)
  return { name: match[1]!, step: Number(match[2] ?? 1000) }
}
