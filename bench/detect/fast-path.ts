import { fileURLToPath } from 'node:url'
import { peek, protect, shieldOf } from '@firebreak/client'
import { startRedis, startSource, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'

const threshold = 1000
const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

/** How long after its crossing a key is served from memory, in milliseconds, for each round. */
export interface FastPathDelays {
  /** The process reads as fast as a storm: 20 thresholds a second. */
  readonly storm: readonly number[]
  /** It creeps over its threshold: 1.3 a second. */
  readonly creeping: readonly number[]
}

/** One protected client, a Redis and a hub, each a process of its own; only the client reads the key. */
export async function measureFastPath(rounds: number): Promise<FastPathDelays> {
  const redis = await startRedis()
  const hub = startSource(main, ['hub', '--port', '0', '--log-level', 'error'])
  const [, hubUrl] = await hub.printed(/hub (http:\S+)/)
  await fetch(`${hubUrl}/v1/rules/hot`, {
    method: 'PUT',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ prefix: 'hot', threshold, windowMs: 1000, strategy: 'LocalCache' }),
  })
  const client = protect(new Redis(redis.url), { hubs: [hubUrl!], serviceId: 'shop', tableFile: false })
  try {
    await waitFor(() => shieldOf(client)!.isConnected)
    const storm: number[] = []
    const creeping: number[] = []
    for (let round = 0; round < rounds; round++) {
      storm.push(await crossing(client, `hot-storm-${round}`, threshold * 20))
      creeping.push(await crossing(client, `hot-creep-${round}`, threshold * 1.3))
    }
    return { storm, creeping }
  } finally {
    shieldOf(client)?.close()
    client.disconnect()
    await hub.stop()
    await redis.stop()
  }
}

/** Reads a key at a rate until it is local; the time from the access that reached the threshold on. */
async function crossing(client: Redis, key: string, perSecond: number): Promise<number> {
  await client.set(key, 'value')
  const startedAt = performance.now()
  let accesses = 1
  let crossedAt: number | undefined
  while (peek(client, key) === undefined) {
    const due = ((performance.now() - startedAt) * perSecond) / 1000
    for (; accesses < due; accesses++) {
      if (accesses === threshold) crossedAt = performance.now()
      client.get(key).catch(() => {})
    }
    await new Promise(setImmediate)
  }
  // Local before it crossed: by what the hub or the window counted of the last access or two.
  return crossedAt === undefined ? 0 : performance.now() - crossedAt
}
