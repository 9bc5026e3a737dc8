import { join } from 'node:path'
import { freePort, type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RedisRegistry } from '../workers/redis-registry.ts'
import { SnowflakeNode } from './snowflake-node.ts'

// A clock that jumped an hour ahead and back: the worker id that issued ids for that time is unusable for an hour.

const hour = 3_600_000
let redis: RedisServer
let client: Ioredis
let roots = 0
const nodes: SnowflakeNode[] = []
beforeAll(async () => {
  redis = await startRedis()
  client = new Ioredis(redis.port)
})
afterEach(async () => {
  await Promise.all(nodes.splice(0).map((node) => node.close()))
})
afterAll(async () => {
  client.disconnect()
  await redis.stop()
})

describe.each([true, false])('with a cache file: %s', (hasFile) => {
  async function place() {
    const root = `jump${roots++}`
    const address = { ip: '127.0.0.1', port: await freePort() }
    const cacheFile = join(temporaryFolder('jump'), 'worker.json')
    const clock = { offsetMs: 0, now: () => Date.now() + clock.offsetMs }
    const alarms: string[] = []
    const start = async () => {
      const node = await SnowflakeNode.start({
        registry: new RedisRegistry({ redis: client, root, address, sessionTimeoutMs: 1000 }),
        address,
        ...(hasFile ? { cacheFile } : {}),
        reportEveryMs: 50,
        registryAheadMs: 1000,
        markAheadMs: 100,
        claimWaitMs: 5000,
        clock,
        onAlarm: ({ code }) => alarms.push(code),
      })
      nodes.push(node)
      return node
    }
    return { start, clock, alarms }
  }

  const take = (node: SnowflakeNode) => {
    try {
      return node.next()
    } catch {
      return undefined
    }
  }

  test('a running node takes another worker id and resumes within two cycles', async () => {
    const { start, clock, alarms } = await place()
    const node = await start()
    expect(node.workerId).toBe(0)
    clock.offsetMs = hour
    const ahead = await waitFor(() => take(node))
    clock.offsetMs = 0
    expect(() => node.next()).toThrow(expect.objectContaining({ code: 'FB_IDS_CLOCK_BACKWARD' }))
    const back = await waitFor(() => take(node), { timeoutMs: 10_000 })
    expect(node.workerId).toBe(1)
    expect(BigInt(back) < BigInt(ahead)).toBe(true)
    expect(alarms).toContain('FB_IDS_WORKER_ABANDONED')
    // Again: the first two numbers are not used, whatever the clock does.
    clock.offsetMs = 2 * hour
    await waitFor(() => take(node))
    clock.offsetMs = 0
    await waitFor(() => take(node))
    expect(node.workerId).toBe(2)
  })

  test('a restart takes another worker id instead of refusing for an hour, and keeps the new one', async () => {
    const { start, clock } = await place()
    const first = await start()
    clock.offsetMs = hour
    await waitFor(() => take(first))
    await first.close()
    clock.offsetMs = 0
    const second = await start()
    expect(second.workerId).toBe(1)
    second.next()
    await second.close()
    const third = await start()
    expect(third.workerId).toBe(1)
    await third.close()
    // The hour has passed: either number will do, and no id comes twice.
    clock.offsetMs = hour + 60_000
    const last = await start()
    expect([0, 1]).toContain(last.workerId)
  })

  test('a clock that is behind by less than abandonAfterMs is refused as before', async () => {
    const { start, clock } = await place()
    const first = await start()
    first.next()
    await first.close()
    clock.offsetMs = -60_000
    await expect(start()).rejects.toMatchObject({ code: 'FB_IDS_CLOCK_REFUSED' })
  })
})
