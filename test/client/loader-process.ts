// Calls getOrLoad for many readers at once; its loader counts itself in Redis and takes a while.
import { getOrLoad } from '@firebreak/client'
import { Redis } from 'ioredis'

const { port, key, readers } = JSON.parse(process.argv[2]!) as { port: number; key: string; readers: number }
const redis = new Redis(port)
const loader = async () => {
  await redis.incr(`${key}:loads`)
  await new Promise((resolve) => setTimeout(resolve, 100))
  return 'loaded'
}
const values = await Promise.all(
  Array.from({ length: readers }, () => getOrLoad(redis, key, loader, { ttlMs: 60_000 })),
)
process.stdout.write(`${JSON.stringify({ right: values.filter((value) => value === 'loaded').length })}\n`)
redis.disconnect()
