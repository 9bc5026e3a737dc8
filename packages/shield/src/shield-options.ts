import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { InvalidOptionError, type Runtime, systemRuntime, version } from '@firebreak/core'
import type { DiskTierOptions } from './disk/disk-tier-options.ts'
import { isNatsUrl, parseHubUrl, parseNatsUrl } from './hub/hub-address.ts'
import type { HubTransport } from './hub/hub-channel.ts'
import { webSocketHubs } from './hub/web-socket-hubs.ts'
import type { Warning } from './trouble/trouble.ts'

/** How a process' shield works; every field has a default. */
export interface ShieldOptions {
  /**
   * The hubs' URLs; one connection goes to one of them. None: hot keys are not known, only the kill switch of the
   * environment works. A `nats://host:port` among them: reports go there, tables still come from a hub.
   * @default FIREBREAK_HUB (URLs with commas between), else `['http://127.0.0.1:7070']`
   */
  readonly hubs?: readonly string[]
  /** An app token, where the hubs ask for one. @default FIREBREAK_TOKEN */
  readonly token?: string
  /** The service that this process belongs to; rules and tables are per service. @default FIREBREAK_SERVICE, else the package's name */
  readonly serviceId?: string
  /** The machine. @default FIREBREAK_HOST, else the host's name */
  readonly hostId?: string
  /** The process. @default host, process id and a random part */
  readonly instanceId?: string
  /** What this is, for the hub's host list. @default 'shield/' and the version */
  readonly agent?: string
  /** Where the last good table is kept; false: nowhere. @default a file of the service in the user's cache folder */
  readonly tableFile?: string | false
  /**
   * What a key is called outside this process, in reports, statuses and claims. It must give the same name each time;
   * keys that get one name are counted and handled as one.
   */
  readonly redactKey?: (key: string) => string
  /** Nothing is served once the last answered request of the watcher was sent longer ago than this. @default 300 */
  readonly leaseMs?: number
  /** How long a value lives where the server refuses tracking. @default 100 */
  readonly fallbackTtlMs?: number
  /**
   * About how often one cached value is compared with Redis, on a connection of its own, to measure staleness; 0: never.
   * @default 5000
   */
  readonly canaryMs?: number
  /** Keys counted exactly in an interval. @default 65536 */
  readonly maxKeys?: number
  /** Reports that wait while no hub is there; beyond, the oldest goes. @default 64 */
  readonly maxQueuedReports?: number
  /** Entries of waiting reports, all together. @default 262144 */
  readonly maxQueuedEntries?: number
  /** How many processes share a RateLimit that each counts for itself: everyone admits this part of it. @default 1 */
  readonly limitProcesses?: number
  /** Accesses of one limited key that may wait for their turn; beyond, they are refused. @default 1000 */
  readonly maxLimitWaiting?: number
  /** How long an access may wait for its turn; one that would wait longer is refused at once. @default 1000 */
  readonly maxLimitWaitMs?: number
  /** Where replies go that memory has no room for (needs the package `lmdb`); undefined: they are let go. */
  readonly diskTier?: DiskTierOptions
  /** Gets each kind of trouble once. @default a process warning */
  readonly onWarning?: (warning: Warning) => void
  /** Time, timers, chance and names. @default the process' own */
  readonly runtime?: Runtime
  /** What carries frames to the hubs, for simulations. @default WebSockets */
  readonly hubTransport?: HubTransport
}

/** `ShieldOptions` with every default filled in. */
export interface ResolvedShieldOptions
  extends Required<Omit<ShieldOptions, 'token' | 'redactKey' | 'onWarning' | 'tableFile' | 'diskTier'>> {
  readonly token: string | undefined
  readonly redactKey: ((key: string) => string) | undefined
  readonly onWarning: ((warning: Warning) => void) | undefined
  readonly tableFile: string | undefined
  readonly diskTier: DiskTierOptions | undefined
}

/** Checks the options and fills the defaults in. */
export function resolveShieldOptions(options: ShieldOptions): ResolvedShieldOptions {
  const env = process.env
  const { runtime = systemRuntime } = options
  const hostId = options.hostId ?? env['FIREBREAK_HOST'] ?? hostname()
  const serviceId = options.serviceId ?? env['FIREBREAK_SERVICE'] ?? env['npm_package_name'] ?? 'service'
  const hubs = options.hubs ?? env['FIREBREAK_HUB']?.split(',').map((url) => url.trim()) ?? ['http://127.0.0.1:7070']
  for (const url of hubs) isNatsUrl(url) ? parseNatsUrl(url) : parseHubUrl(url)
  for (const name of ['serviceId', 'hostId', 'instanceId'] as const) {
    if (options[name] === '') throw new InvalidOptionError(name, '', 'a text that is not empty')
  }
  return {
    hubs,
    token: options.token ?? env['FIREBREAK_TOKEN'],
    serviceId,
    hostId,
    instanceId: options.instanceId ?? `${hostId}-${process.pid}-${Math.floor(runtime.random() * 2 ** 32).toString(36)}`,
    agent: options.agent ?? `shield/${version}`,
    tableFile: options.tableFile === false ? undefined : (options.tableFile ?? defaultTableFile(serviceId)),
    redactKey: options.redactKey,
    leaseMs: above('leaseMs', options.leaseMs ?? 300, 10),
    fallbackTtlMs: above('fallbackTtlMs', options.fallbackTtlMs ?? 100, 0),
    canaryMs: above('canaryMs', options.canaryMs ?? 5000, 0),
    maxKeys: above('maxKeys', options.maxKeys ?? 65_536, 1),
    maxQueuedReports: above('maxQueuedReports', options.maxQueuedReports ?? 64, 1),
    maxQueuedEntries: above('maxQueuedEntries', options.maxQueuedEntries ?? 262_144, 1),
    limitProcesses: above('limitProcesses', options.limitProcesses ?? 1, 1),
    maxLimitWaiting: above('maxLimitWaiting', options.maxLimitWaiting ?? 1000, 1),
    maxLimitWaitMs: above('maxLimitWaitMs', options.maxLimitWaitMs ?? 1000, 1),
    diskTier: options.diskTier,
    onWarning: options.onWarning,
    runtime,
    hubTransport: options.hubTransport ?? webSocketHubs,
  }
}

function above(option: string, value: number, least: number): number {
  if (!Number.isFinite(value) || value < least) throw new InvalidOptionError(option, value, `a number from ${least} on`)
  return value
}

function defaultTableFile(serviceId: string): string {
  const folder = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  return join(folder, 'firebreak', `table-${encodeURIComponent(serviceId)}.json`)
}
