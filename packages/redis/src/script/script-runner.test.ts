import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { createClient } from 'redis'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { toRedis } from '../adapters/to-redis.ts'
import { defineScript } from './redis-script.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const script = defineScript('add', "return redis.call('INCRBY', KEYS[1], ARGV[1])")

async function callsOf(command: string): Promise<number> {
  const stats = await server.cli('INFO', 'commandstats')
  return Number(new RegExp(`cmdstat_${command}:calls=(\\d+)`).exec(stats)?.[1] ?? 0)
}

test.each(['ioredis', 'node-redis'])(
  '%s: calls that find a script missing at the same time share one load, and each call runs once',
  async (kind) => {
    const ioredis = new Ioredis(server.port)
    const nodeRedis = createClient({ url: server.url })
    await nodeRedis.connect()
    const redis = toRedis(kind === 'ioredis' ? ioredis : nodeRedis)
    for (let round = 1; round <= 3; round++) {
      await server.cli('SCRIPT', 'FLUSH')
      const before = await callsOf('eval')
      await Promise.all(Array.from({ length: 50 }, () => redis.run(script, [kind], [1])))
      expect(await callsOf('eval')).toBe(before + 1)
      expect(await redis.send(['GET', kind])).toBe(String(round * 50))
    }
    ioredis.disconnect()
    nodeRedis.destroy()
  },
)
