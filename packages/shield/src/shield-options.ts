import { homedir, hostname } from 'node:os'
import { join } from 'node:path'
import { centreUrlForm, parseCentreUrl } from '@firebreak/centre'
import { FirebreakError, InvalidOptionError, type Runtime, systemRuntime, version } from '@firebreak/core'
import { type KeyRedactionOptions, keyRedaction } from '@firebreak/core/node'
import {
  describePolicy,
  parseRetryLines,
  type RetryChoices,
  type RetryPolicy,
  resolveRetry,
} from '@firebreak/core/settings'
import type { DiskTierOptions } from './disk/disk-tier-options.ts'
import { checkHubUrls } from './hub/hub-address.ts'
import type { HubTransport } from './hub/hub-channel.ts'
import { webSocketHubs } from './hub/web-socket-hubs.ts'
import type { Warning } from './trouble/trouble.ts'
import { shieldRetrySteps } from './watcher/tracking-retry.ts'

export type ShieldRetryStep = keyof typeof shieldRetrySteps

/** Options of a process' shield; every field has a default. */
export interface ShieldOptions extends KeyRedactionOptions {
  /**
   * The hubs' URLs; one connection goes to one of them. Empty: hot keys are not known, and only the kill switch in the
   * environment works. With a `nats://host:port` or `kafka://host:port[,host:port…]` among them, reports go there while
   * tables still come from a hub.
   * @default FIREBREAK_HUB (URLs separated by commas), otherwise `['http://127.0.0.1:7070']`
   */
  readonly hubs?: readonly string[]
  /**
   * A config centre that hubs publish tables to: `etcd://host:port[,host:port…][/root]`, `zookeeper://…`, `consul://…`
   * or `nacos://…`. Its table applies while no hub answers, and always if `hubs` is empty or only names a stream.
   * @default FIREBREAK_TABLES, otherwise none
   */
  readonly tables?: string
  /** An app token, if the hubs require one. @default FIREBREAK_TOKEN */
  readonly token?: string
  /**
   * A file with the token, which only its owner can read; read again for each connection to a hub, so that a rotated
   * token needs no restart. @default FIREBREAK_TOKEN_FILE
   */
  readonly tokenFile?: string
  /**
   * The service that this process belongs to; rules and tables are per service. @default FIREBREAK_SERVICE, otherwise
   * the package's name
   */
  readonly serviceId?: string
  /** The machine. @default FIREBREAK_HOST, otherwise the host's name */
  readonly hostId?: string
  /** The process. @default host, process id and a random part */
  readonly instanceId?: string
  /** The program, for the hub's list of hosts. @default 'shield/' and the version */
  readonly agent?: string
  /** Where to keep the last good table; false: nowhere. @default a file for the service in the user's cache folder */
  readonly tableFile?: string | false
  /**
   * The name that a key has outside this process, in reports, statuses and claims. It must return the same name each
   * time; keys with the same name are counted and handled as one.
   * @default according to `redactKeys` and `redactSecret` (FIREBREAK_REDACT_KEYS, FIREBREAK_REDACT_SECRET)
   */
  readonly redactKey?: (key: string) => string
  /** Whether an admin at the hub may ask this process for the beginning of a key's value. @default false */
  readonly showsValues?: boolean
  /** Nothing is served if the watcher's last answered request was sent longer ago than this. @default 300 */
  readonly leaseMs?: number
  /**
   * How to retry a lost watcher, and when to give up: `{ tracking: { tries: 20, deadlineMs: 60000, atEnd: 'stop' } }`.
   * Nothing is served from memory meanwhile. `alarm` keeps retrying and notifies the hub; `stop` ends it for this
   * process.
   * @default FIREBREAK_RETRY (`tracking tries=20 atEnd=stop`), otherwise forever, after 20 to 400 ms
   */
  readonly retry?: RetryChoices<ShieldRetryStep>
  /** How long a value lives if the server refuses tracking. @default 100 */
  readonly fallbackTtlMs?: number
  /**
   * Roughly how often one cached value is compared with Redis, over a separate connection, to measure staleness; 0:
   * never.
   * @default 5000
   */
  readonly canaryMs?: number
  /** Maximum number of keys counted exactly in an interval. @default 65536 */
  readonly maxKeys?: number
  /** Maximum number of reports waiting while there is no hub; beyond that the oldest is dropped. @default 64 */
  readonly maxQueuedReports?: number
  /** Maximum number of entries in all waiting reports. @default 262144 */
  readonly maxQueuedEntries?: number
  /** How many processes share a RateLimit that each counts for itself: each admits its share. @default 1 */
  readonly limitProcesses?: number
  /** Accesses of one limited key that may wait for their turn; more are refused. @default 1000 */
  readonly maxLimitWaiting?: number
  /** How long an access may wait for its turn; one that would wait longer is refused at once. @default 1000 */
  readonly maxLimitWaitMs?: number
  /** How long a limit with a `shared` scope waits for Redis before each process counts for itself. @default 50 */
  readonly limitDeadlineMs?: number
  /** Takes replies that do not fit in memory (needs the package `lmdb`); undefined: they are evicted. */
  readonly diskTier?: DiskTierOptions
  /** Receives each kind of problem once. @default a process warning */
  readonly onWarning?: (warning: Warning) => void
  /** Time, timers, randomness and ids. @default the process' own */
  readonly runtime?: Runtime
  /** The transport for frames to the hubs, for simulations. @default WebSockets */
  readonly hubTransport?: HubTransport
}

/** `ShieldOptions` with every default filled in. */
export interface ResolvedShieldOptions
  extends Required<
    Omit<
      ShieldOptions,
      | 'token'
      | 'tokenFile'
      | 'tables'
      | 'redactKey'
      | 'retry'
      | 'onWarning'
      | 'tableFile'
      | 'diskTier'
      | keyof KeyRedactionOptions
    >
  > {
  readonly token: string | undefined
  /** Where `token` is undefined. */
  readonly tokenFile: string | undefined
  readonly tables: string | undefined
  readonly retry: Readonly<Record<ShieldRetryStep, RetryPolicy>>
  readonly redactKey: ((key: string) => string) | undefined
  readonly onWarning: ((warning: Warning) => void) | undefined
  readonly tableFile: string | undefined
  readonly diskTier: DiskTierOptions | undefined
}

/** Validates the options and fills in the defaults. */
export function resolveShieldOptions(options: ShieldOptions): ResolvedShieldOptions {
  const env = process.env
  const { runtime = systemRuntime } = options
  const hostId = options.hostId ?? env['FIREBREAK_HOST'] ?? hostname()
  const serviceId = options.serviceId ?? env['FIREBREAK_SERVICE'] ?? env['npm_package_name'] ?? 'service'
  const hubs = options.hubs ?? env['FIREBREAK_HUB']?.split(',').map((url) => url.trim()) ?? ['http://127.0.0.1:7070']
  checkHubUrls(hubs)
  const tables = options.tables ?? env['FIREBREAK_TABLES']
  // It may contain a password, which must not be in the message.
  if (tables !== undefined && parseCentreUrl(tables) === undefined)
    throw new InvalidOptionError('tables', `${tables.split(':')[0]}:…`, centreUrlForm)
  for (const name of ['serviceId', 'hostId', 'instanceId'] as const) {
    if (options[name] === '') throw new InvalidOptionError(name, '', 'a non-empty string')
  }
  return {
    hubs,
    ...tokenOf(options, env),
    tables,
    serviceId,
    hostId,
    instanceId: options.instanceId ?? `${hostId}-${process.pid}-${Math.floor(runtime.random() * 2 ** 32).toString(36)}`,
    agent: options.agent ?? `shield/${version}`,
    tableFile: options.tableFile === false ? undefined : (options.tableFile ?? defaultTableFile(serviceId)),
    redactKey: options.redactKey ?? redactionOf(options),
    showsValues: options.showsValues ?? false,
    leaseMs: above('leaseMs', options.leaseMs ?? 300, 10),
    retry: retryOf(options.retry, env['FIREBREAK_RETRY']),
    fallbackTtlMs: above('fallbackTtlMs', options.fallbackTtlMs ?? 100, 0),
    canaryMs: above('canaryMs', options.canaryMs ?? 5000, 0),
    maxKeys: above('maxKeys', options.maxKeys ?? 65_536, 1),
    maxQueuedReports: above('maxQueuedReports', options.maxQueuedReports ?? 64, 1),
    maxQueuedEntries: above('maxQueuedEntries', options.maxQueuedEntries ?? 262_144, 1),
    limitProcesses: above('limitProcesses', options.limitProcesses ?? 1, 1),
    maxLimitWaiting: above('maxLimitWaiting', options.maxLimitWaiting ?? 1000, 1),
    maxLimitWaitMs: above('maxLimitWaitMs', options.maxLimitWaitMs ?? 1000, 1),
    limitDeadlineMs: above('limitDeadlineMs', options.limitDeadlineMs ?? 50, 1),
    diskTier: options.diskTier,
    onWarning: options.onWarning,
    runtime,
    hubTransport: options.hubTransport ?? webSocketHubs,
  }
}

/** What the call names comes before the environment. */
function tokenOf({ token, tokenFile }: ShieldOptions, env: NodeJS.ProcessEnv) {
  if (token !== undefined || tokenFile !== undefined)
    return { token, tokenFile: token === undefined ? tokenFile : undefined }
  const byVariable = env['FIREBREAK_TOKEN']
  return { token: byVariable, tokenFile: byVariable === undefined ? env['FIREBREAK_TOKEN_FILE'] : undefined }
}

function retryOf(chosen: ShieldOptions['retry'], variable: string | undefined): ResolvedShieldOptions['retry'] {
  return resolveRetry(shieldRetrySteps, chosen ?? parseShieldRetry(variable ? [variable] : []), retryFailure)
}

const retryFailure = (_field: string, message: string) => new FirebreakError('FB_OPTION_INVALID', message)

/** The option `retry` as users write it in a flag or a variable: `tracking tries=50 atEnd=stop`. */
export function parseShieldRetry(lines: readonly string[]): RetryChoices<ShieldRetryStep> {
  const choices = parseRetryLines(shieldRetrySteps, lines, retryFailure)
  // Refuses wrong values here, where the flag is known.
  resolveRetry(shieldRetrySteps, choices, retryFailure)
  return choices
}

/** All steps by default, for the help. */
export function describeShieldRetry(): string {
  return Object.entries(shieldRetrySteps)
    .map(([name, { policy }]) => `${name}: ${describePolicy(policy)}`)
    .join('; ')
}

function redactionOf(options: ShieldOptions): ((key: string) => string) | undefined {
  const env = process.env
  const redactKeys = options.redactKeys ?? env['FIREBREAK_REDACT_KEYS']?.split(',').map((pattern) => pattern.trim())
  const redactSecret = options.redactSecret ?? env['FIREBREAK_REDACT_SECRET']
  return keyRedaction({
    ...(redactKeys !== undefined && { redactKeys }),
    ...(redactSecret !== undefined && { redactSecret }),
  })
}

function above(option: string, value: number, least: number): number {
  if (!Number.isFinite(value) || value < least) throw new InvalidOptionError(option, value, `a number from ${least} on`)
  return value
}

function defaultTableFile(serviceId: string): string {
  const folder = process.env['XDG_CACHE_HOME'] ?? join(homedir(), '.cache')
  return join(folder, 'firebreak', `table-${encodeURIComponent(serviceId)}.json`)
}
