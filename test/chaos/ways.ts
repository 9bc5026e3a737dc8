import { protect, shieldOf } from '@firebreak/client'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import type { Stage } from './stage.ts'

/** One way in which an application reaches its Redis. */
export interface ChaosWay {
  readonly name: string
  readonly reach: 'sdk' | 'proxy'
  get(key: string): Promise<string | null>
  set(key: string, value: string): Promise<unknown>
  /** True if its shield passes commands through; undefined if it is in another process. */
  isOff(): boolean | undefined
  isConnected(): boolean
  close(): void
}

const settings = {
  maxRetriesPerRequest: 1,
  commandTimeout: 5000,
  retryStrategy: () => 100,
} as const

/** Both libraries with protection, and an unprotected one behind the proxy. */
export async function openWays(stage: Stage): Promise<readonly ChaosWay[]> {
  return [ioredisWay(stage), await nodeRedisWay(stage), proxyWay(stage)]
}

/** A client without Firebreak, over the same link as the protected ones. */
export function bareClient(stage: Stage): Redis {
  const client = new Redis(stage.dataLink.port, settings)
  client.on('error', () => {})
  return client
}

function protection(stage: Stage, instanceId: string) {
  return {
    hubs: [...stage.hubUrls],
    serviceId: 'shop',
    redisClusterId: 'main',
    instanceId,
    tableFile: false as const,
    onWarning: () => {},
  }
}

function ioredisWay(stage: Stage): ChaosWay {
  const client = protect(bareClient(stage), protection(stage, 'ioredis'))
  return {
    name: 'ioredis',
    reach: 'sdk',
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    isOff: () => shieldOf(client)!.isOff,
    isConnected: () => shieldOf(client)!.isConnected,
    close() {
      shieldOf(client)!.close()
      client.disconnect()
    },
  }
}

async function nodeRedisWay(stage: Stage): Promise<ChaosWay> {
  const socket = { host: '127.0.0.1', port: stage.dataLink.port, reconnectStrategy: () => 100 }
  const client = protect(createClient({ socket, disableOfflineQueue: true }), protection(stage, 'node-redis'))
  client.on('error', () => {})
  await client.connect()
  return {
    name: 'node-redis',
    reach: 'sdk',
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    isOff: () => shieldOf(client)!.isOff,
    isConnected: () => shieldOf(client)!.isConnected,
    close() {
      shieldOf(client)!.close()
      client.destroy()
    },
  }
}

function proxyWay(stage: Stage): ChaosWay {
  const client = new Redis(stage.proxyPort, settings)
  client.on('error', () => {})
  return {
    name: 'proxy',
    reach: 'proxy',
    get: (key) => client.get(key),
    set: (key, value) => client.set(key, value),
    isOff: () => undefined,
    isConnected: () => client.status === 'ready',
    close: () => client.disconnect(),
  }
}
