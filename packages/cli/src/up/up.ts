import { mkdirSync } from 'node:fs'
import { pageFolder } from '@firebreak/console'
import type { OtlpExporterOptions, OtlpOptions } from '@firebreak/core/metrics'
import { addressOf } from '@firebreak/core/resp'
import { type Hub, type HubServices, openHubServices, startHub } from '@firebreak/hub'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type OwnRedis, openRedis as openConnection } from '@firebreak/redis'
import { UsageError } from '../command/command.ts'
import { openingUrl } from '../redis-source/redis-client.ts'
import { openRedis, type RedisSource } from '../redis-source/redis-source.ts'
import { openSaleDesk } from '../sale/sale-desk.ts'
import { readRunning, removeRunning, writeRunning } from './running-file.ts'

/** What `firebreak up` starts, and where. */
export interface UpOptions {
  readonly dataFolder: string
  /** @default 7070, or a free one if that is taken */
  readonly hubPort?: number | undefined
  /** @default 6380, or a free one if that is taken */
  readonly proxyPort?: number | undefined
  readonly redisUrl?: string | undefined
  readonly logLevel?: string
  /** Where hub and proxy push their metrics. @default nowhere */
  readonly otlp?: OtlpOptions | undefined
  /**
   * Logs for the proxy when the collector or Redis becomes unreachable and when it recovers; the hub has its own log.
   * @default process warnings
   */
  readonly logger?: OtlpExporterOptions['logger']
}

/** Everything that runs. */
export interface Up {
  readonly redis: RedisSource
  readonly hub: Hub
  readonly proxyUrl: string
  /** Default ports that were in use. */
  readonly takenPorts: readonly number[]
  close(): Promise<void>
}

/** A new hub starts with one rule, so that something happens: any key with a thousand accesses per second is cached. */
const firstRule = { id: 'any-key', glob: '*', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }

const defaultHubPort = 7070
const defaultProxyPort = 6380

/** Starts a Redis if none is named, the hub with its console and services, and a proxy in front of the Redis. */
export async function startUp(options: UpOptions): Promise<Up> {
  const ends: (() => unknown)[] = []
  const takenPorts: number[] = []
  const close = async () => {
    for (const end of ends.splice(0).reverse()) await end()
  }
  try {
    mkdirSync(options.dataFolder, { recursive: true, mode: 0o700 })
    const redis = await openRedis({ url: options.redisUrl })
    ends.push(() => redis.stop())
    const urls = openingUrl(redis)
    let writer: Promise<OwnRedis> | undefined
    ends.push(async () => (await writer?.catch(() => undefined))?.close())
    const writeValue = async (key: string, value: string) => {
      writer ??= openConnection(urls)
      await (await writer).redis.send(['SET', key, value])
    }
    // The Redis that is protected may hold a sale; nobody has said that it does.
    const sale = openSaleDesk(urls, { isAssumed: true })
    ends.push(() => sale.close())
    const services = await openHubServices({ dataFolder: options.dataFolder, workerId: 0, sale })
    ends.push(() => services.close())
    const hub = await onPort(options.hubPort, defaultHubPort, takenPorts, (port) =>
      startUpHub(options, services, { source: redis, writeValue }, port),
    )
    ends.push(() => hub.close())
    const shield = {
      hubs: [hub.url],
      serviceId: 'proxy',
      redisClusterId: clusterOf(redis),
      tableFile: false as const,
    }
    const mode = redis.isCluster ? 'cluster' : 'auto'
    const { otlp, logger } = options
    const telemetry = { ...(otlp && { otlp }), ...(logger && { logger }) }
    const proxy: FirebreakProxy = await onPort(options.proxyPort, defaultProxyPort, takenPorts, (port) =>
      startProxy({ upstream: redis.url, mode, port, shield, ...telemetry }),
    )
    ends.push(() => proxy.close())
    const proxyUrl = `redis://127.0.0.1:${proxy.port}`
    writeRunning(options.dataFolder, { pid: process.pid, hubUrl: hub.url, redisUrl: redis.url, proxyUrl })
    ends.push(() => removeRunning(options.dataFolder))
    return { redis, hub, proxyUrl, takenPorts, close }
  } catch (error) {
    await close()
    const other = readRunning(options.dataFolder)
    if (other === undefined) throw error
    throw new UsageError(
      `Firebreak is up in ${options.dataFolder} already (${other.hubUrl}, process ${other.pid}); stop it, or give this one its own folder with --data`,
      { cause: error },
    )
  }
}

function startUpHub(
  { dataFolder, logLevel = 'warn', otlp }: UpOptions,
  { plugins }: HubServices,
  { source, writeValue }: { source: RedisSource; writeValue(key: string, value: string): Promise<void> },
  port: number,
): Promise<Hub> {
  return startHub({
    dataFolder,
    consoleFolder: pageFolder,
    initialRules: [firstRule],
    logLevel,
    plugins,
    port,
    ...(otlp && { otlp }),
    // Lets the console search it for big and hot keys.
    engines: [`${clusterOf(source)}=${source.url.split(',')[0]}`],
    writeValue: (_, key, value) => writeValue(key, value),
  })
}

/**
 * The name under which a client without a cluster name reports this Redis, so that the proxy's and the applications'
 * heat are summed.
 */
function clusterOf({ targets }: RedisSource): string {
  return targets.map(addressOf).sort()[0]!
}

/** Starts something on the requested port; if none, on the default one, or on a free one if that is taken. */
async function onPort<T>(
  asked: number | undefined,
  usual: number,
  taken: number[],
  start: (port: number) => Promise<T>,
): Promise<T> {
  if (asked !== undefined) return start(asked)
  try {
    return await start(usual)
  } catch (error) {
    const { code, cause } = error as NodeJS.ErrnoException & { cause?: NodeJS.ErrnoException }
    if (code !== 'EADDRINUSE' && cause?.code !== 'EADDRINUSE') throw error
    taken.push(usual)
    return start(0)
  }
}
