import { readFileSync } from 'node:fs'
import { parseRedisUrls, type RedisTarget, type RedisTlsOptions } from '@firebreak/core/resp'
import type { DiscoverOptions } from '@firebreak/find'
import { type CommandIo, UsageError } from '../command/command.ts'
import type { FlagSpec, FlagValues } from '../flags/flag-table.ts'
import { durationMs, wholeNumber } from '../flags/quantities.ts'
import { dataFolderOf, readRunning } from '../up/running-file.ts'
import { askSecret } from './ask-secret.ts'

/** The flags that say which Redis a command talks to. */
export const connectionFlags: readonly FlagSpec[] = [
  {
    name: 'url',
    short: 'u',
    value: 'URL',
    env: 'REDIS_URL',
    isSecret: true,
    help: 'redis://user@host:port/db, rediss:// for TLS, unix:///path; of several nodes of a cluster, the first is asked',
  },
  { name: 'host', value: 'NAME', help: 'server, any cluster node, or a Sentinel', env: 'REDIS_HOST' },
  { name: 'port', short: 'p', value: 'N', help: 'its port', env: 'REDIS_PORT' },
  { name: 'socket', short: 's', value: 'PATH', help: 'a Unix socket instead' },
  { name: 'user', value: 'NAME', help: 'ACL user', env: 'REDIS_USER' },
  {
    name: 'password',
    short: 'a',
    value: 'TEXT',
    help: 'better set in the environment or prompted for: other users can see a flag',
    env: 'REDISCLI_AUTH',
    isSecret: true,
  },
  { name: 'ask-password', help: 'ask for the password, without showing it' },
  { name: 'db', short: 'n', value: 'N', help: 'database number' },
  { name: 'tls', help: 'use TLS' },
  { name: 'cacert', value: 'FILE', help: 'certificate authority (PEM)' },
  { name: 'cert', value: 'FILE', help: 'client certificate (PEM)' },
  { name: 'key-file', value: 'FILE', help: 'its key (PEM)' },
  { name: 'sni', value: 'NAME', help: 'the name that the server certificate must carry' },
  { name: 'insecure', help: 'accept any server certificate' },
  { name: 'sentinel-master', value: 'NAME', help: 'the master to ask a Sentinel for' },
  {
    name: 'sentinel-password',
    value: 'TEXT',
    help: "the Sentinel's own password",
    env: 'FIREBREAK_SENTINEL_PASSWORD',
    isSecret: true,
  },
  { name: 'connect-timeout', value: 'TIME', help: 'how long to wait for a connection', default: '5s' },
]

/** The Redis named by flags and environment; prompts for the password if requested. */
export async function connectionOf(
  values: FlagValues,
  io: CommandIo,
): Promise<{ target: RedisTarget } & DiscoverOptions> {
  // A flag takes precedence over the environment: `--port` means that port even if REDIS_URL names another server.
  const isPlaceGiven = ['host', 'port', 'socket'].some((name) => values.isGiven(name))
  const url = isPlaceGiven && !values.isGiven('url') ? undefined : (values.get('url') ?? runningRedis(values, io))
  // Of a cluster several nodes may be named: any of them knows the others.
  const base: RedisTarget = url === undefined ? {} : parseRedisUrls(url)[0]!
  const password = values.has('ask-password')
    ? await askSecret('Password: ', io)
    : (base.password ?? values.get('password'))
  const tls = tlsOf(values) ?? base.tls
  const text = (name: string) => values.get(name)
  const target: RedisTarget = {
    ...base,
    ...(text('host') === undefined || url !== undefined ? {} : { host: text('host')! }),
    ...(text('port') === undefined || url !== undefined ? {} : { port: wholeNumber('port', text('port')!, 1, 65535) }),
    ...(text('socket') === undefined ? {} : { socketPath: text('socket')! }),
    ...(text('user') === undefined || base.username !== undefined ? {} : { username: text('user')! }),
    ...(password === undefined ? {} : { password }),
    ...(text('db') === undefined ? {} : { database: wholeNumber('db', text('db')!, 0, 1_000_000) }),
    ...(tls === undefined ? {} : { tls }),
    connectTimeoutMs: durationMs('connect-timeout', text('connect-timeout') ?? '5s'),
  }
  return {
    target,
    ...(text('sentinel-master') === undefined ? {} : { sentinelMaster: text('sentinel-master')! }),
    ...(text('sentinel-password') === undefined ? {} : { sentinelPassword: text('sentinel-password')! }),
  }
}

/** The Redis of a `firebreak up` running in this folder, if nothing else is named. */
function runningRedis(values: FlagValues, { env }: CommandIo): string | undefined {
  if (['host', 'port', 'socket', 'sentinel-master'].some((name) => values.has(name))) return undefined
  return readRunning(dataFolderOf(env))?.redisUrl
}

function tlsOf(values: FlagValues): true | RedisTlsOptions | undefined {
  const names = ['cacert', 'cert', 'key-file', 'sni', 'insecure']
  if (!values.has('tls') && !names.some((name) => values.has(name))) return undefined
  return {
    ...(values.has('cacert') ? { ca: readPem('cacert', values.get('cacert')!) } : {}),
    ...(values.has('cert') ? { certificate: readPem('cert', values.get('cert')!) } : {}),
    ...(values.has('key-file') ? { key: readPem('key-file', values.get('key-file')!) } : {}),
    ...(values.has('sni') ? { serverName: values.get('sni')! } : {}),
    ...(values.has('insecure') ? { isVerified: false } : {}),
  }
}

function readPem(flag: string, file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    throw new UsageError(`--${flag}: ${(error as Error).message}`)
  }
}
