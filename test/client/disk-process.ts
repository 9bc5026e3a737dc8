// A process with a disk tier that survives it. Prints `warm` once all its keys are on disk, then answers lines with keys.
import { createInterface } from 'node:readline'
import { protect, shieldOf } from '@firebreak/client'
import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'

interface Plan {
  readonly port: number
  readonly hub: string
  readonly path: string
  readonly keys: readonly string[]
}

const { port, hub, path, keys } = JSON.parse(process.argv[2]!) as Plan
const redis = protect(new Redis(port), {
  hubs: [hub],
  serviceId: 'shop',
  redisClusterId: 'main',
  tableFile: false,
  canaryMs: 0,
  diskTier: { path, survivesRestart: true },
})
const { diskTier } = shieldOf(redis)!
await waitFor(() => diskTier!.state !== 'checking')
process.stdout.write(`tier ${diskTier!.state} ${diskTier!.bytes > 0 ? 'full' : 'empty'}\n`)
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  if (line === 'warm') {
    await waitFor(async () => {
      for (const key of keys) await redis.get(key)
      return diskTier!.size === keys.length && diskTier!.waitingBytes === 0
    })
    process.stdout.write('warm\n')
  } else {
    const value = await redis.get(line)
    process.stdout.write(`${line}=${value?.slice(0, 20)} ${value?.length}\n`)
  }
}
