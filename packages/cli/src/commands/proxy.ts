import { type ProxyOptions, type ProxyUserOptions, parseShieldRetry, proxySettings, startProxy } from '@firebreak/proxy'
import { type Command, type CommandIo, UsageError } from '../command/command.ts'
import { stderrLogger } from '../command/stderr-logger.ts'
import { whenEnded } from '../command/when-ended.ts'
import { CommandSettings, flagsOf, helpOf } from '../flags/command-settings.ts'

/** `firebreak proxy`: a proxy alone, until Ctrl-C or SIGTERM. */
export const proxy: Command = {
  flags: flagsOf(proxySettings),
  help: `A proxy in front of a Redis, a Redis Cluster or Sentinels, for clients in any language.

Examples:
  firebreak proxy --upstream redis://127.0.0.1:6379
  firebreak proxy --upstream redis://10.0.0.1:7000,10.0.0.2:7000 --workers 4
  firebreak proxy --hub http://127.0.0.1:7070 --service shop

${helpOf(proxySettings)}
Warns on stderr when Redis is unreachable, and again when it recovers.
Ctrl-C or SIGTERM lets pending requests finish, then closes.
`,
  async run(args, io) {
    const ended = whenEnded(io.signal)
    const given = proxyOptionsOf(args, io)
    const running = await startProxy({ ...given, logger: stderrLogger(io) })
    const where = given.path ?? `${given.host ?? '127.0.0.1'}:${running.port}`
    io.stdout.write(`The proxy listens on ${where}. Ctrl-C stops it.\n`)
    if (running.metricsPort !== undefined)
      io.stdout.write(`Metrics  port ${running.metricsPort}, /metrics, /livez and /readyz\n`)
    await ended
    await running.close()
    return 0
  },
}

/** Flags, variables and the settings file as options of a proxy. */
export function proxyOptionsOf(args: readonly string[], io: Pick<CommandIo, 'env' | 'stderr'>): ProxyOptions {
  const settings = CommandSettings.read(proxySettings, args, io)
  const {
    upstream = 'redis://127.0.0.1:6379',
    idleTimeout,
    announce,
    user,
    certificateUser,
    hub,
    tables,
    token,
    service,
    clusterId,
    tableFile,
    leaseMs,
    fallbackTtlMs,
    canaryMs,
    hostId,
    instanceId,
    showsValues,
    maxKeys,
    maxQueuedReports,
    maxQueuedEntries,
    limitProcesses,
    maxLimitWaiting,
    maxLimitWaitMs,
    limitDeadlineMs,
    diskFolder,
    diskMaxBytes,
    diskRetryAfterMs,
    diskSurvivesRestart,
    retry,
    redactKeys,
    redactSecret,
    tlsCert,
    tlsKey,
    tlsCa,
    upstreamCa,
    upstreamCert,
    upstreamKey,
    ...plain
  } = settings.values as Record<string, never>
  const upstreamTls = known({
    ca: settings.file('upstreamCa'),
    cert: settings.file('upstreamCert'),
    key: settings.file('upstreamKey'),
  })
  const disk = { maxBytes: diskMaxBytes, retryAfterMs: diskRetryAfterMs, survivesRestart: diskSurvivesRestart }
  if (known(disk) !== undefined && diskFolder === undefined)
    throw new UsageError('--disk-max-bytes, --disk-retry-after-ms and --disk-survives-restart need --disk-folder')
  settings.together('tlsCert', 'tlsKey')
  settings.together('upstreamCert', 'upstreamKey')
  if (tlsCa !== undefined && tlsCert === undefined) throw new UsageError('--tls-ca needs --tls-cert and --tls-key')
  if (certificateUser !== undefined && tlsCa === undefined) throw new UsageError('--certificate-user needs --tls-ca')
  for (const name of ['tlsCert', 'tlsKey', 'tlsCa']) settings.file(name)
  return {
    upstream,
    ...plain,
    ...(idleTimeout !== undefined && { idleTimeoutMs: idleTimeout * 1000 }),
    ...(announce !== undefined && { announce: placeOf(announce, settings) }),
    ...usersOf(user ?? [], certificateUser ?? [], settings),
    ...(tlsCert !== undefined && { tlsFiles: { cert: tlsCert, key: tlsKey!, ...known({ ca: tlsCa }) } }),
    ...(upstreamTls !== undefined && { upstreamTls }),
    ...((hub !== undefined || tables !== undefined) && {
      shield: {
        hubs: hub ?? [],
        ...tokenOf(token, settings, io),
        ...known({ tables, serviceId: service, redisClusterId: clusterId, hostId, instanceId, showsValues }),
        ...known({ leaseMs, fallbackTtlMs, canaryMs, maxKeys, maxQueuedReports, maxQueuedEntries }),
        ...known({ limitProcesses, maxLimitWaiting, maxLimitWaitMs, limitDeadlineMs, redactKeys, redactSecret }),
        ...(diskFolder !== undefined && { diskTier: { path: diskFolder, ...known(disk) } }),
        ...(retry !== undefined && { retry: retryOf(retry) }),
        ...(tableFile !== undefined && { tableFile: tableFile === 'none' ? false : tableFile }),
      },
    }),
    ...(settings.otlp !== undefined && { otlp: settings.otlp }),
  }
}

/** A token that a file holds is left in it: the proxy reads the file again when the token is rotated. */
function tokenOf(token: string | undefined, settings: CommandSettings, { env }: Pick<CommandIo, 'env'>) {
  const place = token === undefined ? '' : settings.placeOf('token')
  return place.endsWith('_FILE') ? known({ tokenFile: env[place] }) : known({ token })
}

function retryOf(lines: readonly string[]) {
  try {
    return parseShieldRetry(lines)
  } catch (error) {
    throw new UsageError((error as Error).message)
  }
}

/** The fields that have a value; undefined if none has. */
function known<Fields extends object>(
  fields: Fields,
): { [Name in keyof Fields]: NonNullable<Fields[Name]> } | undefined {
  const entries = Object.entries(fields).filter(([, value]) => value !== undefined)
  return entries.length === 0 ? undefined : (Object.fromEntries(entries) as never)
}

function placeOf(text: string, settings: CommandSettings): NonNullable<ProxyOptions['announce']> {
  const { host, port } = /^(?<host>\[[\da-f:.]+\]|[^:[\]]+):(?<port>\d{1,5})$/i.exec(text)?.groups ?? {}
  if (host === undefined || Number(port) < 1 || Number(port) > 65_535) {
    throw new UsageError(`${settings.placeOf('announce')} is "${text}"; it must be HOST:PORT`)
  }
  return { host: host.replace(/^\[|\]$/g, ''), port: Number(port) }
}

/** Users by password, by certificate, or both. */
function usersOf(
  passwords: readonly string[],
  certificates: readonly string[],
  settings: CommandSettings,
): Pick<ProxyOptions, 'users'> {
  const users = new Map<string, ProxyUserOptions>()
  for (const text of passwords) {
    const user = userOf(text, settings)
    users.set(user.name, user)
  }
  for (const text of certificates) {
    const [, certificate, name] = /^([^=]+)=([^=]+)$/.exec(text) ?? []
    if (certificate === undefined || name === undefined) {
      throw new UsageError(`${settings.placeOf('certificateUser')} is "${text}"; it must be NAME=USER`)
    }
    const user = users.get(name)
    users.set(name, { ...user, name, certificates: [...(user?.certificates ?? []), certificate] })
  }
  return users.size === 0 ? {} : { users: [...users.values()] }
}

function userOf(text: string, settings: CommandSettings): { name: string; password: string } {
  const colon = text.indexOf(':')
  // The text is not repeated: it may be a password.
  if (colon < 1) throw new UsageError(`${settings.placeOf('user')} must be NAME:PASSWORD`)
  return { name: text.slice(0, colon), password: text.slice(colon + 1) }
}
