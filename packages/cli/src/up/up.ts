import { mkdirSync } from 'node:fs'
import { pageFolder } from '@firebreak/console'
import { type Hub, type HubServices, openHubServices, startHub } from '@firebreak/hub'
import { openRedis, type RedisSource } from '../redis-source/redis-source.ts'
import { removeRunning, writeRunning } from './running-file.ts'

/** What `firebreak up` starts, and where. */
export interface UpOptions {
  readonly dataFolder: string
  /** @default 7070, or a free one where that is taken */
  readonly hubPort?: number | undefined
  readonly redisUrl?: string | undefined
  readonly logLevel?: string
}

/** Everything that runs. */
export interface Up {
  readonly redis: RedisSource
  readonly hub: Hub
  close(): Promise<void>
}

/** A new hub begins with one rule, so that something happens: any key with a thousand accesses a second is cached. */
const firstRule = { id: 'any-key', glob: '*', threshold: 1000, windowMs: 1000, strategy: 'LocalCache' }

const defaultPort = 7070

/** Starts a Redis where none is named, then the hub with its console. */
export async function startUp(options: UpOptions): Promise<Up> {
  const redis = await openRedis({ url: options.redisUrl })
  let services: HubServices | undefined
  let hub: Hub
  try {
    mkdirSync(options.dataFolder, { recursive: true })
    services = await openHubServices({ dataFolder: options.dataFolder, workerId: 0 })
    hub = await startHubOnPort(options, services)
  } catch (error) {
    await services?.close()
    await redis.stop()
    throw error
  }
  writeRunning(options.dataFolder, { pid: process.pid, hubUrl: hub.url, redisUrl: redis.url })
  return {
    redis,
    hub,
    async close() {
      removeRunning(options.dataFolder)
      await hub.close()
      await services.close()
      await redis.stop()
    },
  }
}

async function startHubOnPort(
  { hubPort, dataFolder, logLevel = 'warn' }: UpOptions,
  { plugins }: HubServices,
): Promise<Hub> {
  const hubOptions = { dataFolder, consoleFolder: pageFolder, initialRules: [firstRule], logLevel, plugins }
  if (hubPort !== undefined) return startHub({ ...hubOptions, port: hubPort })
  try {
    return await startHub({ ...hubOptions, port: defaultPort })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error
    return startHub({ ...hubOptions, port: 0 })
  }
}
