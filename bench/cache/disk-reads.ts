import { join } from 'node:path'
import { protect, shieldOf, unprotect } from '@firebreak/client'
import { defaultLocalCache } from '@firebreak/core'
import { startRedis, TestHub, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { type Bench, interleaved, median, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'

const keyCount = 300
const valueBytes = 20_000
const reads = 3000
const concurrency = 100

/** GETs of hot keys of which memory holds few and the disk tier the rest, against a bare client on the same server. */
export async function diskReads(bench: Bench): Promise<void> {
  say('hot keys on disk')
  const server = await startRedis()
  const hub = await TestHub.start()
  const [bare, guarded] = [new Redis(server.port), new Redis(server.port)]
  const diskTier = { path: join(temporaryFolder('bench'), 'tier') }
  protect(guarded, { hubs: [hub.url], serviceId: 'bench', redisClusterId: 'main', tableFile: false, diskTier })
  const tier = shieldOf(guarded)!.diskTier!
  const keys = Array.from({ length: keyCount }, (_, index) => `page:${index}`)
  for (const key of keys) await bare.set(key, key.padEnd(valueBytes, 'x'))
  hub.heat('main', keys, { strategy: { ...defaultLocalCache, cacheSize: 3 } })
  await waitFor(async () => {
    for (const key of keys) await guarded.get(key)
    return tier.size >= keyCount - 3 && tier.waitingBytes === 0
  })
  const getsPerSecond = (redis: Redis) => async () => {
    let next = 0
    const worker = async () => {
      while (next < reads) await redis.get(keys[(next++ * 7) % keyCount]!)
    }
    const before = workMs()
    await Promise.all(Array.from({ length: concurrency }, worker))
    return (reads / (workMs() - before)) * 1000
  }
  const contestants = { bare: getsPerSecond(bare), disk: getsPerSecond(guarded) }
  await interleaved(2, contestants)
  const speeds = await interleaved(rounds(10, 30), contestants)
  bench.report({
    id: 'disk-vs-bare-ioredis',
    ratio: medianRatio(speeds.disk, speeds.bare),
    of: `await get() a second of hot keys of 20 kB on disk (${Math.round(median(speeds.disk)).toLocaleString('en-US')})`,
    to: `the bare client's (${Math.round(median(speeds.bare)).toLocaleString('en-US')})`,
  })
  unprotect(guarded)
  for (const redis of [bare, guarded]) redis.disconnect()
  await hub.kill()
  await server.stop()
}
