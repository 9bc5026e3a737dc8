import { peek, protect } from '@firebreak/client'
import { waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'

/** The options of such a process. */
export interface FleetProcess {
  readonly port: number
  readonly hub: string
  readonly serviceId: string
  readonly instanceId: string
  /** Keys that it reads without end, reporting whether the first is in memory; without them it waits for SIGUSR2. */
  readonly keys?: readonly string[]
}

/** Reads that a signal asks for. */
const asked = 15

/** A protected process of a fleet: options as JSON in the first argument. */
const { port, hub, serviceId, instanceId, keys } = JSON.parse(process.argv[2]!) as FleetProcess
const redis = new Redis(port)
protect(redis, { hubs: [hub], serviceId, instanceId, redisClusterId: 'main', tableFile: false, onWarning() {} })

if (keys === undefined) {
  // The hot keys are known once a key of the same table is in memory.
  await waitFor(async () => {
    await redis.get('marker')
    return peek(redis, 'marker') !== undefined
  })
  process.on('SIGUSR2', async () => {
    const replies: unknown[] = []
    for (let count = 0; count < asked; count++) replies.push(await redis.get('hot').catch((error: Error) => error))
    const admitted = replies.filter((reply) => reply === 'v').length
    const limited = replies.filter((reply) => reply instanceof Error && /limit/i.test(reply.message)).length
    process.stdout.write(`admitted ${admitted} limited ${limited}\n`)
  })
  process.stdout.write('ready\n')
} else {
  let wasHeld: boolean | undefined
  for (;;) {
    await Promise.all(keys.map((key) => redis.get(key)))
    const isHeld = peek(redis, keys[0]!) !== undefined
    if (isHeld !== wasHeld) process.stdout.write(`${isHeld ? 'memory' : 'redis'}\n`)
    wasHeld = isHeld
    await new Promise((resolve) => setTimeout(resolve, 10))
  }
}
