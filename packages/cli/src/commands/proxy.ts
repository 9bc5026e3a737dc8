import { readFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { otlpOf, stderrLogger } from '../command/otlp.ts'

const options = {
  upstream: { type: 'string' },
  mode: { type: 'string' },
  'sentinel-group': { type: 'string' },
  host: { type: 'string' },
  port: { type: 'string' },
  path: { type: 'string' },
  workers: { type: 'string' },
  transport: { type: 'string' },
  'max-clients': { type: 'string' },
  'idle-timeout': { type: 'string' },
  'slow-log-ms': { type: 'string' },
  'tls-cert': { type: 'string' },
  'tls-key': { type: 'string' },
  'upstream-ca': { type: 'string' },
  user: { type: 'string', multiple: true },
  'as-cluster': { type: 'boolean' },
  announce: { type: 'string' },
  hub: { type: 'string' },
  token: { type: 'string' },
  service: { type: 'string' },
  'cluster-id': { type: 'string' },
  'metrics-port': { type: 'string' },
  'metrics-host': { type: 'string' },
  'otlp-endpoint': { type: 'string' },
} as const

/** `firebreak proxy`: a proxy alone, until Ctrl-C or SIGTERM. */
export const proxy: Command = {
  flags: Object.keys(options),
  help: `A proxy before a Redis, a Redis Cluster or Sentinels, for clients in any language.

Examples:
  firebreak proxy --upstream redis://127.0.0.1:6379
  firebreak proxy --upstream redis://10.0.0.1:7000,10.0.0.2:7000 --workers 4
  firebreak proxy --hub http://127.0.0.1:7070 --service shop

Options (each has an env twin, FIREBREAK_PROXY_ and the name in capitals):
  --upstream URL       redis://[user:password@]host:port[/db], rediss://, unix:///path; several with commas
                       (default: REDIS_URL, else redis://127.0.0.1:6379)
  --mode MODE          auto, single, cluster or sentinel (default auto)
  --sentinel-group N   with Sentinels: the group's name (default mymaster)
  --host ADDRESS       where to listen (default 127.0.0.1)
  --port PORT          0 takes a free one (default 6380)
  --path FILE          listen on a unix socket instead
  --workers N          threads on the one port (default 1)
  --transport KIND     net, or raw for Node's raw handles (default net)
  --max-clients N      (default 10000)
  --idle-timeout S     close clients that are silent for so many seconds (default 0: never)
  --slow-log-ms MS     requests slower than this are in FIREBREAK SLOWLOG (default 10)
  --tls-cert FILE --tls-key FILE   TLS towards clients
  --upstream-ca FILE   the CA of a Redis with TLS
  --user NAME:PASSWORD users of the proxy's own; may be given several times, in its env twin a line each (default:
                       AUTH is passed on)
  --as-cluster         a single Redis answers CLUSTER SLOTS as a cluster of one (env twin: true or false)
  --announce HOST:PORT what CLUSTER SLOTS tells as the proxy's address (default: where it listens; with a host as 0.0.0.0,
                       the address that the client has reached)
  --hub URL            count keys, tell this hub, handle hot keys (env FIREBREAK_HUB; default: a plain proxy)
  --token TOKEN        for a hub that wants one (env FIREBREAK_TOKEN)
  --service NAME       the service whose rules hold (env FIREBREAK_SERVICE)
  --cluster-id NAME    how the hub calls this Redis (default: its address)
  --metrics-port PORT  serve /metrics for Prometheus, /livez and /readyz over HTTP (default: not served)
  --metrics-host ADDR  where that listens (default: as --host)
  --otlp-endpoint URL  push metrics to an OpenTelemetry collector, as http://127.0.0.1:4318 (also its own variables:
                       OTEL_EXPORTER_OTLP_ENDPOINT and the rest; default: none)
A Redis that does not answer is told on stderr, and that it is back.
Ctrl-C or SIGTERM lets requests on their way end, then closes.
`,
  async run(args, io) {
    const { values } = parseArgs({ args: [...args], options })
    const running = await startProxy({ ...proxyOptionsOf(values, io), logger: stderrLogger(io) })
    const where = values.path ?? `${values.host ?? '127.0.0.1'}:${running.port}`
    io.stdout.write(`The proxy listens on ${where}. Ctrl-C ends it.\n`)
    if (running.metricsPort !== undefined)
      io.stdout.write(`Metrics  port ${running.metricsPort}, /metrics, /livez and /readyz\n`)
    await new Promise<void>((resolve) => {
      if (io.signal.aborted) resolve()
      io.signal.addEventListener('abort', () => resolve())
    })
    await running.close()
    return 0
  },
}

/** The flags and their env twins as options of a proxy. */
export function proxyOptionsOf(
  values: Partial<Record<keyof typeof options, string | boolean | string[]>>,
  { env, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
): ProxyOptions {
  const text = (name: keyof typeof options): string | undefined => {
    const twin = env[`FIREBREAK_PROXY_${name.toUpperCase().replaceAll('-', '_')}`]
    return (values[name] as string | undefined) ?? twin
  }
  const whole = (name: keyof typeof options): number | undefined => {
    const value = text(name)
    if (value === undefined) return undefined
    if (!/^\d+$/.test(value)) throw new UsageError(`--${name} is "${value}"; it must be a whole number`)
    return Number(value)
  }
  const oneOf = <Value extends string>(name: keyof typeof options, allowed: readonly Value[]): Value | undefined => {
    const value = text(name)
    if (value !== undefined && !allowed.includes(value as Value)) {
      throw new UsageError(`--${name} is "${value}"; it must be one of ${allowed.join(', ')}`)
    }
    return value as Value | undefined
  }
  const flag = (name: keyof typeof options): boolean | undefined => {
    const value = oneOf(name, ['true', 'false'])
    return value === undefined ? undefined : value === 'true'
  }
  const lines = (name: keyof typeof options) =>
    text(name)
      ?.split('\n')
      .filter((line) => line !== '')
  const [cert, key, ca] = [text('tls-cert'), text('tls-key'), text('upstream-ca')]
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('--tls-cert and --tls-key belong together')
  const hub = text('hub') ?? env['FIREBREAK_HUB']
  const idleSeconds = whole('idle-timeout')
  const given = {
    mode: oneOf('mode', ['auto', 'single', 'cluster', 'sentinel']),
    sentinelGroup: text('sentinel-group'),
    host: text('host'),
    port: whole('port'),
    path: text('path'),
    workers: whole('workers'),
    transport: oneOf('transport', ['net', 'raw']),
    maxClients: whole('max-clients'),
    idleTimeoutMs: idleSeconds === undefined ? undefined : idleSeconds * 1000,
    slowLogMs: whole('slow-log-ms'),
    asCluster: (values['as-cluster'] as boolean | undefined) ?? flag('as-cluster'),
    announce: placeOf(text('announce')),
    tls: cert === undefined ? undefined : { cert: readFileSync(cert), key: readFileSync(key!) },
    upstreamTls: ca === undefined ? undefined : { ca: readFileSync(ca) },
    users: ((values.user as string[] | undefined) ?? lines('user'))?.map(userOf),
    shield:
      hub === undefined
        ? undefined
        : shieldOf(String(hub), {
            token: text('token'),
            serviceId: text('service'),
            redisClusterId: text('cluster-id'),
          }),
    metricsPort: whole('metrics-port'),
    metricsHost: text('metrics-host'),
    otlp: otlpOf(text('otlp-endpoint'), { env, stderr }),
  }
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { upstream: text('upstream') ?? env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', ...known }
}

function shieldOf(hub: string, given: Record<string, string | undefined>): NonNullable<ProxyOptions['shield']> {
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { hubs: hub.split(',').map((url) => url.trim()), ...known }
}

function placeOf(text: string | undefined): ProxyOptions['announce'] {
  if (text === undefined) return undefined
  const { host, port } = /^(?<host>\[[\da-f:.]+\]|[^:[\]]+):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535)
    throw new UsageError(`--announce is "${text}"; it must be HOST:PORT`)
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

function userOf(text: string): { name: string; password: string } {
  const colon = text.indexOf(':')
  if (colon < 1) throw new UsageError('--user must be NAME:PASSWORD')
  return { name: text.slice(0, colon), password: text.slice(colon + 1) }
}
