// Calls getOrLoad for many readers at once; its loader counts itself in Redis and takes a while.
import { getOrLoad } from '@firebreak/client'
import type { RedisClient } from '@firebreak/redis'
import { libraries } from './libraries.ts'

interface Plan {
  readonly port: number
  readonly key: string
  readonly readers: number
  readonly library?: string
}

const { port, key, readers, library = 'ioredis 6' } = JSON.parse(process.argv[2]!) as Plan
const client = await libraries[library]!({ kind: 'standalone', port })
const loader = async () => {
  await client.call(['INCR', `${key}:loads`])
  await new Promise((resolve) => setTimeout(resolve, 100))
  return 'loaded'
}
const values = await Promise.all(
  Array.from({ length: readers }, () => getOrLoad(client.raw as RedisClient, key, loader, { ttlMs: 60_000 })),
)
process.stdout.write(`${JSON.stringify({ right: values.filter((value) => value === 'loaded').length })}\n`)
client.close()
