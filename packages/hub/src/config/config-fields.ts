import { type OtlpOptions, otlpVariables } from '@firebreak/core'

/** What a setting's value may be. */
export type ConfigKind =
  | { readonly kind: 'text' }
  | { readonly kind: 'number'; readonly min: number; readonly max: number }
  | { readonly kind: 'choice'; readonly choices: readonly string[] }
  | { readonly kind: 'list' }
  /** `name=value,name=value`, values percent-encoded where they hold a comma; in the file an object. */
  | { readonly kind: 'pairs' }
  /** A list of objects, or the name of a YAML or JSON file that holds it. */
  | { readonly kind: 'objects' }

/** One setting of the hub: its field in the file, its flag (`--kebab-case`) and its variable follow from its name. */
export interface ConfigField {
  readonly name: string
  readonly type: ConfigKind
  /** For the reference and for `--help`. */
  readonly summary: string
  /** As people read it; the value itself is the default of `startHub`'s option. */
  readonly default: string
  /** The option of `otlp` that this is: OpenTelemetry's own variables count for it too, after the hub's. */
  readonly otlp?: Exclude<keyof OtlpOptions, 'isDisabled'>
}

const text: ConfigKind = { kind: 'text' }
const milliseconds = (min: number, max: number): ConfigKind => ({ kind: 'number', min, max })
const count = (max: number): ConfigKind => ({ kind: 'number', min: 1, max })

export const configFields: readonly ConfigField[] = [
  { name: 'host', type: text, default: '127.0.0.1', summary: 'where to listen; beyond loopback only with tokens' },
  { name: 'port', type: { kind: 'number', min: 0, max: 65_535 }, default: '7070', summary: '0: a free one' },
  { name: 'dataFolder', type: text, default: 'none', summary: 'where rules, history and audit are kept' },
  {
    name: 'storeUrl',
    type: text,
    default: 'none',
    summary: 'redis://host:port[,host:port…]: a Redis or Redis Cluster that several hubs share, instead of dataFolder',
  },
  {
    name: 'natsUrl',
    type: text,
    default: 'none',
    summary: 'nats://[user:password@]host:port: take reports from a NATS JetStream too',
  },
  {
    name: 'publishTo',
    type: text,
    default: 'none',
    summary: 'etcd://host:port/root or zookeeper://host:port/root: publish tables to a config centre too',
  },
  {
    name: 'engines',
    type: { kind: 'list' },
    default: 'none',
    summary: 'clusterId=redis://host:port: protected servers that are asked for their own statistics',
  },
  { name: 'consoleFolder', type: text, default: 'none', summary: 'the built console' },
  { name: 'rulesFile', type: text, default: 'none', summary: 'rules that an empty store begins with (YAML or JSON)' },
  { name: 'tokensFile', type: text, default: 'none', summary: 'app tokens and people’s tokens (YAML or JSON)' },
  {
    name: 'allowedHosts',
    type: { kind: 'list' },
    default: 'none',
    summary: 'names under which browsers reach the hub',
  },
  { name: 'tlsCertFile', type: text, default: 'none', summary: 'PEM certificate; with tlsKeyFile' },
  { name: 'tlsKeyFile', type: text, default: 'none', summary: 'PEM key; with tlsCertFile' },
  { name: 'tlsCaFile', type: text, default: 'none', summary: 'callers must show a certificate of this authority' },
  {
    name: 'logLevel',
    type: { kind: 'choice', choices: ['fatal', 'error', 'warn', 'info', 'debug', 'trace', 'silent'] },
    default: 'info',
    summary: 'what is logged, as JSON lines on stderr',
  },
  { name: 'hubId', type: text, default: 'random', summary: 'names this hub to sensors and people' },
  { name: 'reportIntervalMs', type: milliseconds(10, 600_000), default: '100', summary: 'how often sensors report' },
  {
    name: 'maxReportIntervalMs',
    type: milliseconds(10, 600_000),
    default: '5000',
    summary: 'the slowest that many sensors are asked for',
  },
  { name: 'maxReportsPerSecond', type: count(1e7), default: '10000', summary: 'beyond it sensors are slowed' },
  { name: 'maxEntriesPerSecond', type: count(1e8), default: '300000', summary: 'beyond it sensors sample' },
  {
    name: 'maxReportAgeMs',
    type: milliseconds(100, 3_600_000),
    default: '10000',
    summary: 'older reports are refused',
  },
  {
    name: 'maxReportBytes',
    type: { kind: 'number', min: 1024, max: 2 ** 28 },
    default: '4194304',
    summary: 'larger reports are refused',
  },
  {
    name: 'heartbeatMs',
    type: milliseconds(50, 60_000),
    default: '1000',
    summary: 'how often sensors hear of the hub',
  },
  { name: 'hostTimeoutMs', type: milliseconds(100, 86_400_000), default: '15000', summary: 'a silent process is gone' },
  { name: 'maxInstances', type: count(1e7), default: '100000', summary: 'processes known at once' },
  {
    name: 'settleMs',
    type: milliseconds(0, 3_600_000),
    default: '200',
    summary: 'a key is evaluated so long after its first report',
  },
  { name: 'settleJitterMs', type: milliseconds(0, 3_600_000), default: '100', summary: 'and a random part of this' },
  {
    name: 'entryTtlMs',
    type: milliseconds(1000, 86_400_000),
    default: '60000',
    summary: 'how long an entry lives without a hub',
  },
  {
    name: 'restartGraceMs',
    type: milliseconds(0, 600_000),
    default: '5000',
    summary: 'how long hot keys outlive a restart unseen',
  },
  {
    name: 'maxTrackedKeys',
    type: count(20_000_000),
    default: '2000000',
    summary: 'keys of a cluster that are counted at once',
  },
  {
    name: 'ingestThreads',
    type: { kind: 'number', min: 0, max: 64 },
    default: '0',
    summary: 'threads that count keys beside the one that decides; 0: none',
  },
  {
    name: 'watchers',
    type: { kind: 'objects' },
    default: 'none',
    summary: 'sources of changes: a list in the file, or a YAML or JSON file with that list',
  },
  {
    name: 'alarmWebhooks',
    type: { kind: 'list' },
    default: 'none',
    summary: 'addresses that get a POST when an alarm begins and ends',
  },
  {
    name: 'otlpEndpoint',
    otlp: 'endpoint',
    type: text,
    default: 'none',
    summary: 'http://collector:4318: push metrics to an OpenTelemetry collector too',
  },
  {
    name: 'otlpHeaders',
    otlp: 'headers',
    type: { kind: 'pairs' },
    default: 'none',
    summary: 'name=value,…: headers of each push, as a key of the receiver',
  },
  {
    name: 'otlpIntervalMs',
    otlp: 'intervalMs',
    type: milliseconds(1, 2 ** 31 - 1),
    default: '60000',
    summary: 'how often metrics are pushed',
  },
  {
    name: 'otlpTimeoutMs',
    otlp: 'timeoutMs',
    type: milliseconds(1, 2 ** 31 - 1),
    default: '10000',
    summary: 'a push without an answer for so long has failed',
  },
  {
    name: 'otlpServiceName',
    otlp: 'serviceName',
    type: text,
    default: 'firebreak-hub',
    summary: 'what the hub is called there',
  },
  {
    name: 'otlpAttributes',
    otlp: 'attributes',
    type: { kind: 'pairs' },
    default: 'none',
    summary: 'name=value,…: further attributes of the resource',
  },
]

/** `dataFolder` → `data-folder` */
export function flagOf(name: string): string {
  return name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)
}

/** `dataFolder` → `FIREBREAK_HUB_DATA_FOLDER` */
export function variableOf(name: string): string {
  return `FIREBREAK_HUB_${flagOf(name).replaceAll('-', '_').toUpperCase()}`
}

/** All variables of a setting, the hub's own first. */
export function variablesOf({ name, otlp }: ConfigField): readonly string[] {
  return [variableOf(name), ...(otlp === undefined ? [] : otlpVariables[otlp])]
}
