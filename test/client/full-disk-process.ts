// A process that cannot write a file beyond some bytes, as on a full disk, until it is told otherwise. Answers each line:
// `read VERSION` reads every key until all have that version, `room` lets files grow, `stats` tells of the tier.
import { execFileSync } from 'node:child_process'
import { createInterface } from 'node:readline'
import { protect, shieldOf } from '@firebreak/client'
import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'

interface Plan {
  readonly port: number
  readonly hub: string
  readonly path: string
  readonly keys: readonly string[]
  readonly valueBytes: number
  readonly fileBytes: number
}

const { port, hub, path, keys, valueBytes, fileBytes } = JSON.parse(process.argv[2]!) as Plan
const bound = (bytes: number | 'unlimited') =>
  execFileSync('prlimit', ['--pid', String(process.pid), `--fsize=${bytes}:`])
const warnings: string[] = []
const redis = protect(new Redis(port), {
  hubs: [hub],
  serviceId: 'shop',
  redisClusterId: 'main',
  tableFile: false,
  canaryMs: 0,
  onWarning: ({ kind }) => warnings.push(kind),
  diskTier: { path, maxBytes: 16 * 2 ** 20, retryAfterMs: 100 },
})
const tier = shieldOf(redis)!.diskTier!
const states = new Set<string>()
bound(fileBytes)
process.stdout.write('ready\n')
for await (const line of createInterface({ input: process.stdin })) {
  const [word, version] = line.split(' ')
  if (word === 'room') bound('unlimited')
  let wrong = 0
  if (word === 'read') {
    await waitFor(async () => {
      const values = await Promise.all(
        keys.map(async (key) => {
          const value = await redis.get(key)
          states.add(tier.state)
          return [key, value] as const
        }),
      )
      // What is not of the version asked for must be whole all the same.
      wrong += values.filter(([key, value]) => value === null || !isPage(key, value)).length
      return values.every(([key, value]) => value?.startsWith(`${key} ${version} `))
    })
  }
  const told = { wrong, states: [...states], state: tier.state, size: tier.size, warnings }
  process.stdout.write(`${word} ${JSON.stringify(told)}\n`)
}

function isPage(key: string, value: string): boolean {
  const [, version] = value.split(' ')
  const word = `${key} ${version} `
  return value === word.repeat(Math.ceil(valueBytes / word.length)).slice(0, valueBytes)
}
