import { parseArgs } from 'node:util'
import { type ProxyOptions, startProxy } from '@firebreak/proxy'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { otlpOf, stderrLogger } from '../command/otlp.ts'
import { whenEnded } from '../command/when-ended.ts'
import { SettingReader } from '../flags/setting-reader.ts'

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
  'max-output-bytes': { type: 'string' },
  'max-total-output-bytes': { type: 'string' },
  'slow-reader-ms': { type: 'string' },
  'connect-wait-ms': { type: 'string' },
  'retry-for-ms': { type: 'string' },
  'drain-ms': { type: 'string' },
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
  --max-output-bytes N how much a client may leave unread before it has to wait (default 16777216)
  --max-total-output-bytes N       the same of all clients together (default 268435456)
  --slow-reader-ms MS  a client that holds up others by not reading for this long is closed (default 10000)
  --connect-wait-ms MS how long requests wait for a connection to Redis before they fail (default 2000)
  --retry-for-ms MS    how long a cluster's redirections and lost nodes are retried where that is safe (default 20000)
  --drain-ms MS        how long requests on their way may take to end at SIGTERM (default 5000)
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
    const given = proxyOptionsOf(values, io)
    const running = await startProxy({ ...given, logger: stderrLogger(io) })
    const where = given.path ?? `${given.host ?? '127.0.0.1'}:${running.port}`
    io.stdout.write(`The proxy listens on ${where}. Ctrl-C ends it.\n`)
    if (running.metricsPort !== undefined)
      io.stdout.write(`Metrics  port ${running.metricsPort}, /metrics, /livez and /readyz\n`)
    await whenEnded(io.signal)
    await running.close()
    return 0
  },
}

type Flag = keyof typeof options

/** The flags and their env twins as options of a proxy. */
export function proxyOptionsOf(
  values: Partial<Record<Flag, string | boolean | string[]>>,
  { env, stderr }: Pick<CommandIo, 'env' | 'stderr'>,
): ProxyOptions {
  const settings = new SettingReader<Flag>(values, env, 'FIREBREAK_PROXY_')
  const [cert, key, ca] = [settings.file('tls-cert'), settings.file('tls-key'), settings.file('upstream-ca')]
  if ((cert === undefined) !== (key === undefined)) throw new UsageError('--tls-cert and --tls-key belong together')
  const hub = settings.text('hub') ?? env['FIREBREAK_HUB']
  const idleSeconds = settings.whole('idle-timeout', 0)
  const given = {
    mode: settings.oneOf('mode', ['auto', 'single', 'cluster', 'sentinel']),
    sentinelGroup: settings.text('sentinel-group'),
    host: settings.text('host'),
    port: settings.whole('port', 0, maxPort),
    path: settings.text('path'),
    workers: settings.whole('workers', 1),
    transport: settings.oneOf('transport', ['net', 'raw']),
    maxClients: settings.whole('max-clients', 1),
    maxOutputBytes: settings.whole('max-output-bytes', 1),
    maxTotalOutputBytes: settings.whole('max-total-output-bytes', 1),
    slowReaderMs: settings.whole('slow-reader-ms', 1),
    connectWaitMs: settings.whole('connect-wait-ms', 1),
    retryForMs: settings.whole('retry-for-ms', 1),
    drainMs: settings.whole('drain-ms', 0),
    idleTimeoutMs: idleSeconds === undefined ? undefined : idleSeconds * 1000,
    slowLogMs: settings.whole('slow-log-ms', 0),
    asCluster: settings.isOn('as-cluster'),
    announce: placeOf(settings),
    tls: cert === undefined ? undefined : { cert, key },
    upstreamTls: ca === undefined ? undefined : { ca },
    users: settings.list('user')?.map((user) => userOf(user, settings)),
    shield:
      hub === undefined
        ? undefined
        : shieldOf(hub, {
            token: settings.text('token'),
            serviceId: settings.text('service'),
            redisClusterId: settings.text('cluster-id'),
          }),
    metricsPort: settings.whole('metrics-port', 0, maxPort),
    metricsHost: settings.text('metrics-host'),
    otlp: otlpOf(settings.text('otlp-endpoint'), { env, stderr }),
  }
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { upstream: settings.text('upstream') ?? env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', ...known }
}

const maxPort = 65_535

function shieldOf(hub: string, given: Record<string, string | undefined>): NonNullable<ProxyOptions['shield']> {
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { hubs: hub.split(',').map((url) => url.trim()), ...known }
}

function placeOf(settings: SettingReader<Flag>): ProxyOptions['announce'] {
  const text = settings.text('announce')
  if (text === undefined) return undefined
  const { host, port } = /^(?<host>\[[\da-f:.]+\]|[^:[\]]+):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > maxPort) throw settings.invalid('announce', 'HOST:PORT')
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

function userOf(text: string, settings: SettingReader<Flag>): { name: string; password: string } {
  const colon = text.indexOf(':')
  // Whatever it is, it may be a password.
  if (colon < 1) throw new UsageError(`${settings.nameOf('user')} must be NAME:PASSWORD`)
  return { name: text.slice(0, colon), password: text.slice(colon + 1) }
}
