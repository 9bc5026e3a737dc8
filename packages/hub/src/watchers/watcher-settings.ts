import { readFileSync } from 'node:fs'
import { parseRedisUrl, type RedisTarget, type RedisTlsOptions } from '@firebreak/core/resp'
import { FieldReader } from '@firebreak/core/rules'
import { type BinlogConnection, parseRowMapping, type RowMapping } from '@firebreak/watch'
import { parse as parseYaml } from 'yaml'
import { HubConfigError } from '../errors.ts'

interface WatcherSettingBase {
  /** The Redis whose changes are watched, by its name in shields. */
  readonly redisClusterId: string
  /** Shown to users, and identifies the position in the store. @default its kind and its cluster */
  readonly name?: string
}

/** Follows a master as a replica that keeps nothing; one for each master. */
export interface ReplicaWatcherSetting extends WatcherSettingBase {
  readonly kind: 'replica'
  readonly address: RedisTarget
  /** Values up to this many bytes travel on the lane. @default 1024 */
  readonly maxValueBytes?: number
  /** @default false */
  readonly allowMinReplicas?: boolean
  /** @default false */
  readonly allowSentinel?: boolean
  /**
   * Set if this cluster's guarding watchers together see every write of all its masters: shields that are refused
   * tracking then rely on them. @default false
   */
  readonly guards?: boolean
}

/** Follows the append-only file of a Redis on the hub's own host. */
export interface AofWatcherSetting extends WatcherSettingBase {
  readonly kind: 'aof'
  readonly folder: string
  /** @default 'appendonly.aof' */
  readonly fileName?: string
  /** @default 'appendonlydir' */
  readonly directoryName?: string
  /** @default 1024 */
  readonly maxValueBytes?: number
  /** As for a replica stream. @default false */
  readonly guards?: boolean
}

/** Carries row changes of a MariaDB or MySQL to Redis, then to the clients. */
export interface BinlogWatcherSetting extends WatcherSettingBase {
  readonly kind: 'binlog'
  readonly connection: BinlogConnection
  readonly mapping: RowMapping
  /** Where the keys are: a URL, or the URLs of a cluster's nodes. */
  readonly redis: string | readonly string[]
  /** The database of the keys. @default 0 */
  readonly database?: number
  /** The application's loader, for keys whose value only it can make. @default none */
  readonly loaderUrl?: string
  /** Our id among the server's replicas. @default a random one */
  readonly serverId?: number
}

export type WatcherSetting = ReplicaWatcherSetting | AofWatcherSetting | BinlogWatcherSetting

const failure = (field: string, message: string) => new HubConfigError(field, message)
const port = { min: 1, max: 65_535, isInteger: true } as const
const valueBytes = { min: 0, max: 1 << 20, isInteger: true } as const

/** Parses watchers in the form that users write: a list of objects with `kind`. */
export function parseWatchers(input: unknown, path = 'watchers'): WatcherSetting[] {
  if (!Array.isArray(input)) throw failure(path, `${path} must be a list of watchers`)
  const settings = input.map((item, index) => parseWatcher(item, `${path}[${index}]`))
  const names = settings.map(watcherName)
  const twice = names.findIndex((name, index) => names.indexOf(name) !== index)
  if (twice >= 0)
    throw failure(`${path}[${twice}].name`, `${path}[${twice}] is the second “${names[twice]}”; give it a name`)
  return settings
}

export function watcherName({ name, kind, redisClusterId }: WatcherSetting): string {
  const kinds = { replica: 'replica stream', aof: 'AOF tail', binlog: 'binlog' }
  return name ?? `${kinds[kind]} of ${redisClusterId}`
}

function parseWatcher(input: unknown, path: string): WatcherSetting {
  const fields = new FieldReader(input, path, failure, 'an object with kind: replica, aof or binlog')
  const kind = fields.choice('kind', ['replica', 'aof', 'binlog'], undefined)
  if (kind === undefined) throw failure(fields.at('kind'), `${fields.at('kind')} is missing: replica, aof or binlog`)
  const base = {
    redisClusterId: required(fields, 'redisClusterId'),
    ...given({ name: fields.text('name', undefined) }),
  }
  const setting = { kind, ...base, ...readers[kind](fields) } as WatcherSetting
  fields.end()
  return setting
}

const readers = {
  replica(fields: FieldReader): Omit<ReplicaWatcherSetting, 'kind' | 'redisClusterId'> {
    const address = new FieldReader(
      fields.raw('address'),
      fields.at('address'),
      failure,
      'an object with host and port',
    )
    const where = {
      host: required(address, 'host'),
      port: address.number('port', port, 6379),
      ...given({
        username: address.text('username', undefined),
        password: address.text('password', undefined),
        tls: readTls(address),
      }),
    }
    address.end()
    return {
      address: where,
      ...given({
        maxValueBytes: fields.number('maxValueBytes', valueBytes, undefined),
        allowMinReplicas: fields.flag('allowMinReplicas', undefined),
        allowSentinel: fields.flag('allowSentinel', undefined),
        guards: fields.flag('guards', undefined),
      }),
    }
  },
  aof(fields: FieldReader): Omit<AofWatcherSetting, 'kind' | 'redisClusterId'> {
    return {
      folder: required(fields, 'folder'),
      ...given({
        fileName: fields.text('fileName', undefined),
        directoryName: fields.text('directoryName', undefined),
        maxValueBytes: fields.number('maxValueBytes', valueBytes, undefined),
        guards: fields.flag('guards', undefined),
      }),
    }
  },
  binlog(fields: FieldReader): Omit<BinlogWatcherSetting, 'kind' | 'redisClusterId'> {
    const connection = new FieldReader(
      fields.raw('connection'),
      fields.at('connection'),
      failure,
      'an object with host',
    )
    const where = {
      host: connection.text('host', '127.0.0.1'),
      port: connection.number('port', port, 3306),
      user: required(connection, 'user'),
      ...given({
        password: connection.text('password', undefined),
        database: connection.text('database', undefined),
        socketPath: connection.text('socketPath', undefined),
      }),
    }
    connection.end()
    return {
      connection: where,
      mapping: readMapping(fields),
      redis: readRedis(fields),
      ...given({
        database: fields.number('database', { min: 0, max: 65_535, isInteger: true }, undefined),
        loaderUrl: fields.text('loaderUrl', undefined),
        serverId: fields.number('serverId', { min: 1, max: 2 ** 32 - 1, isInteger: true }, undefined),
      }),
    }
  },
}

/** `true`, or an object that names the certificate files. */
function readTls(address: FieldReader): boolean | RedisTlsOptions | undefined {
  if (typeof address.raw('tls') !== 'object') return address.flag('tls', undefined)
  const tls = new FieldReader(address.raw('tls'), address.at('tls'), failure, 'true, false, or an object')
  const pem = (name: string) => {
    const file = tls.text(name, undefined)
    try {
      return file === undefined ? undefined : readFileSync(file, 'utf8')
    } catch (cause) {
      throw new HubConfigError(tls.at(name), `${tls.at(name)}: ${(cause as Error).message}`, { cause })
    }
  }
  const options = given({
    ca: pem('caFile'),
    certificate: pem('certFile'),
    key: pem('keyFile'),
    serverName: tls.text('serverName', undefined),
    isVerified: tls.flag('isVerified', undefined),
  })
  tls.end()
  return options
}

function readMapping(fields: FieldReader): RowMapping {
  const given = fields.oneOf(['mapping', 'mappingFile'])
  if (given === undefined) throw failure(fields.at('mappingFile'), `${fields.at('mappingFile')} is missing`)
  try {
    if (given === 'mapping') return parseRowMapping(fields.raw('mapping'))
    return parseRowMapping(parseYaml(readFileSync(required(fields, 'mappingFile'), 'utf8'), { logLevel: 'error' }))
  } catch (cause) {
    throw new HubConfigError(fields.at(given), `${fields.at(given)}: ${(cause as Error).message}`, { cause })
  }
}

function readRedis(fields: FieldReader): string | readonly string[] {
  const redis = fields.raw('redis')
  const urls = Array.isArray(redis) ? redis : [redis]
  const isCluster = Array.isArray(redis)
  const isAddress = (url: unknown) => {
    if (typeof url !== 'string' || !url.includes('://')) return false
    try {
      return parseRedisUrl(url).socketPath === undefined || !isCluster
    } catch {
      return false
    }
  }
  if (urls.length > 0 && urls.every(isAddress)) return redis as string | readonly string[]
  throw failure(fields.at('redis'), `${fields.at('redis')} must be a redis:// URL, or a list of them for a cluster`)
}

function required(fields: FieldReader, name: string): string {
  const value = fields.text(name, undefined)
  return value ?? fields.fail(name, `${fields.at(name)} is missing`)
}

/** Only what was given: an absent option is not the same as one that is undefined. */
function given<Fields extends Record<string, unknown>>(
  fields: Fields,
): { [Name in keyof Fields]?: NonNullable<Fields[Name]> } {
  return Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== undefined)) as {
    [Name in keyof Fields]?: NonNullable<Fields[Name]>
  }
}
