import { expect, test } from 'vitest'
import { type FaultChoice, FaultPlayer, randomSchedule } from './fault-schedule.ts'
import type { RedisLinkError } from './redis-link.ts'
import { runSeeds, type SeedFailure, type SeedOutcome, type SeedRuns } from './run-seeds.ts'
import { SimulatedRedis } from './simulated-redis.ts'
import { VirtualNetwork } from './virtual-network.ts'
import { VirtualValkey } from './virtual-valkey.ts'

// A whole model: three applications place orders in Redis. Law: an order that was acknowledged is placed exactly once,
// and one that ended without an answer once or not at all.
const faults: FaultChoice[] = [
  { kind: 'cut', targets: ['app-1', 'app-2', 'redis'], weight: 3 },
  { kind: 'halfOpen', targets: ['app-1', 'app-3'] },
  { kind: 'blackHole', targets: ['app-2', 'redis'], forMs: [50, 3000] },
  { kind: 'slow', targets: ['app-3>redis:6379'], forMs: [50, 1000], amount: [5, 400] },
  { kind: 'freeze', targets: ['redis'], forMs: [10, 3000] },
  { kind: 'kill', targets: ['redis'], forMs: [10, 1000] },
]

function orderModel(options: { readonly resends: boolean }): Omit<SeedRuns, 'seeds'> {
  return {
    schedule: (chance) => randomSchedule(chance, faults, { count: 12, toMs: 10_000 }),
    async play(world, schedule) {
      const network = new VirtualNetwork(world, { delayMs: [0.1, 4] })
      const valkey = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
      const player = new FaultPlayer(world, network.faults, valkey.faults)
      player.play(schedule)
      const orders = new Map<string, 'placed' | 'uncertain' | 'not placed'>()
      for (const name of ['app-1', 'app-2', 'app-3']) {
        const app = world.process(name)
        const redis = new SimulatedRedis(app, network, 'redis:6379', { commandTimeoutMs: 500, ...options })
        const place = async (id: string): Promise<void> => {
          await redis.send(['HINCRBY', 'orders', id, 1]).then(
            () => orders.set(id, 'placed'),
            (error: RedisLinkError) => orders.set(id, error.mayHaveHappened ? 'uncertain' : 'not placed'),
          )
        }
        app.start(async () => {
          for (; world.elapsedMs < 12_000; await app.sleep(app.chance.between(1, 40))) {
            await Promise.all([place(app.runtime.newId()), place(app.runtime.newId())])
          }
        })
      }
      await world.run(15_000)
      player.undoAll()
      await world.run(5000)
      for (const [id, outcome] of orders) {
        const times = Number(valkey.ask('HGET', 'orders', id))
        const isRight = outcome === 'uncertain' ? times <= 1 : times === (outcome === 'placed' ? 1 : 0)
        if (!isRight) throw new Error(`order ${id} was ${outcome}, and stands ${times} times`)
      }
      return { calls: orders.size, faults: player.injected }
    },
  }
}

async function outcomes(runs: SeedRuns): Promise<SeedOutcome[]> {
  const all: SeedOutcome[] = []
  for await (const outcome of runSeeds(runs)) all.push(outcome)
  return all
}

const seeds = Array.from({ length: 4 }, (_, index) => index + 1)

test('the law holds for a client that does not resend, and every seed gives the same run twice', async () => {
  const first = await outcomes({ seeds, ...orderModel({ resends: false }) })
  expect(first.filter(({ failure }) => failure !== undefined)).toEqual([])
  expect(first.every(({ faults, calls }) => faults === 12 && calls > 300)).toBe(true)
  const second = await outcomes({ seeds, ...orderModel({ resends: false }) })
  expect(second.map(({ digest }) => digest)).toEqual(first.map(({ digest }) => digest))
  expect(new Set(first.map(({ digest }) => digest)).size).toBe(seeds.length)
  const cpuMs = first.reduce((sum, outcome) => sum + outcome.cpuMs, 0)
  console.log(
    `${(first.reduce((sum, { simulatedMs }) => sum + simulatedMs, 0) / cpuMs).toFixed(0)} simulated seconds a CPU second`,
  )
})

test('a client that resends places an order twice; this is found, and shrunk to the one fault that causes it', async () => {
  let failure: SeedFailure | undefined
  for await (const outcome of runSeeds({ seeds, ...orderModel({ resends: true }) }))
    if ((failure = outcome.failure)) break
  expect(String(failure!.error)).toContain('stands 2 times')
  expect(failure!.schedule).toHaveLength(1)
  expect(failure!.lastEvents.length).toBe(30)
})
