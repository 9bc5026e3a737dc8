import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { startRedis, startSource, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createClient } from 'redis'
import { type Bench, interleaved, median, medianRatio, rounds, say } from '../harness/bench.ts'
import { workMs } from '../harness/work-time.ts'
import { type GetClient, getsPerSecond } from './hot-get.ts'

const key = 'product:0'

/** A hot key's read by `peek`, and by `await get()` of both libraries against the bare clients on the same server. */
export async function hotReads(bench: Bench): Promise<void> {
  const server = await startRedis()
  const hub = startSource(new URL('../client/hub-process.ts', import.meta.url), [], { stdio: ['pipe', 'pipe', 'pipe'] })
  const [, hubUrl] = await hub.printed(/hub (\S+)/)

  async function openNodeRedis() {
    const client = createClient({ socket: { host: '127.0.0.1', port: server.port } })
    client.on('error', () => {})
    await client.connect()
    return client
  }

  const guard = <Client extends object>(client: Client): Client =>
    protect(client, { hubs: [hubUrl!], serviceId: 'bench', redisClusterId: 'main', tableFile: false })
  const bare = { ioredis: new Redis(server.port), nodeRedis: await openNodeRedis() }
  const guarded = { ioredis: guard(new Redis(server.port)), nodeRedis: guard(await openNodeRedis()) }
  await bare.ioredis.set(key, 'x'.repeat(100))
  for (const client of Object.values(guarded)) await waitFor(() => shieldOf(client)?.isConnected)
  hub.process.stdin!.write(`heat ${key}\n`)
  for (const client of Object.values(guarded)) {
    await waitFor(async () => {
      await (client as GetClient).get(key)
      return typeof peek(client, key) === 'string'
    })
  }

  say('peek')
  const peeks = 100_000
  const peekSpeeds: number[] = []
  let missed = 0
  for (let round = 0; round < rounds(60, 200); round++) {
    let length = 0
    const before = workMs()
    for (let index = 0; index < peeks; index++) length += peek(guarded.ioredis, key)?.length ?? 0
    const speed = (peeks / (workMs() - before)) * 1000
    // A peek that finds nothing is quicker: only a round in which each gave the value counts.
    if (length === peeks * 100) peekSpeeds.push(speed)
    else missed++
    // Lets the watcher breathe: its lease is what a peek depends on.
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  if (missed > 0) say(`${missed} rounds of peek are left out: the value was not there all the time`)
  bench.report({ id: 'peek-per-second', value: median(peekSpeeds), unit: 'peek/s' })

  const names = { ioredis: 'ioredis', nodeRedis: 'node-redis' } as const
  for (const library of ['ioredis', 'nodeRedis'] as const) {
    say(`hot GET with ${library}`)
    const clients = { bare: bare[library] as GetClient, guarded: guarded[library] as GetClient }
    // Short rounds, and many: what else the machine does then falls into few of them.
    const totals = { bare: 3000, guarded: 60_000 }
    for (let round = 0; round < 5; round++) {
      await getsPerSecond(clients.bare, key, totals.bare)
      await getsPerSecond(clients.guarded, key, totals.guarded)
    }
    const speeds = await interleaved(rounds(30, 100), {
      bare: () => getsPerSecond(clients.bare, key, totals.bare),
      guarded: () => getsPerSecond(clients.guarded, key, totals.guarded),
    })
    // By itself too: a bare client beside a protected one has changed its speed before.
    bench.report({ id: `hot-get-per-second-${names[library]}`, value: median(speeds.guarded), unit: 'GET/s' })
    bench.report({
      id: `async-vs-bare-${names[library]}`,
      ratio: medianRatio(speeds.guarded, speeds.bare),
      of: `a hot key's await get() a second (${Math.round(median(speeds.guarded)).toLocaleString('en-US')})`,
      to: `the bare client's (${Math.round(median(speeds.bare)).toLocaleString('en-US')})`,
    })
  }
  for (const client of Object.values(guarded)) unprotect(client)
  for (const { ioredis, nodeRedis } of [bare, guarded]) {
    ioredis.disconnect()
    nodeRedis.destroy()
  }
  await hub.stop()
  await server.stop()
}
