// What Firebreak does for the product page of a flash sale, and the sold-out memory for the flood after the last item.
// page-vs-unprotected and the p99 are measured with the key's node held at a fixed capacity (3,000 commands a second),
// as a saturated node is; the same pages with a healthy Redis stand beside it.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startHub } from '@firebreak/hub'
import { Snowflake } from '@firebreak/ids'
import { Sale } from '@firebreak/sale'
import { FaultProxy, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { ShopFleet } from '../examples/flash-sale/src/shop-fleet.ts'
import { quantile, Visitors } from '../examples/flash-sale/src/visitors.ts'
import { Bench, interleaved, median, medianRatio, rounds, say } from './harness/bench.ts'

const bench = new Bench('sale')
const server = await startRedis()
const node = await FaultProxy.start(server.port)
const redis = new Redis(server.port)
const folder = mkdtempSync(join(tmpdir(), 'firebreak-bench-sale-'))
const rule = { id: 'product', prefix: 'product:', threshold: 500, windowMs: 1000, strategy: 'LocalCache' }
const hub = await startHub({ initialRules: [rule], logLevel: 'fatal' })
const pageRedisUrl = `redis://127.0.0.1:${node.port}`
const common = { redisUrl: server.url, pageRedisUrl, storeFile: join(folder, 'orders.sqlite') }
const protectedShops = await ShopFleet.start(1, { ...common, hubUrl: hub.url }, 1)
const bareShops = await ShopFleet.start(1, common, 2)
await redis.set('product:1', JSON.stringify({ id: 1, name: 'a thing', price: 1 }))

const roundMs = rounds(1200, 4000)
/** More than the saturated node can give, less than a healthy one. */
const visitorsPerSecond = 3500
const commands = { protected: 0, bare: 0, protectedPages: 0, barePages: 0 }

/** Pages a second with 64 visitors who each ask again as soon as they are answered. */
async function pages(ports: readonly number[], who: 'protected' | 'bare'): Promise<number> {
  const visitors = new Visitors(ports, 100)
  const getsBefore = await gets()
  const started = performance.now()
  let isRunning = true
  const lanes = Array.from({ length: 64 }, async () => {
    while (isRunning) await visitors.look('1')
  })
  await new Promise((resolve) => setTimeout(resolve, roundMs))
  isRunning = false
  await Promise.all(lanes)
  const elapsed = performance.now() - started
  const counts = visitors.take()
  visitors.close()
  commands[who] += (await gets()) - getsBefore
  commands[`${who}Pages`] += counts.pages
  return (counts.pages / elapsed) * 1000
}

/** Visitors come at a fixed rate, whoever waits: how long the slowest of a hundred waited. */
async function waiting(ports: readonly number[], perSecond: number): Promise<number> {
  const visitors = new Visitors(ports, 1000)
  const started = performance.now()
  const looks: Promise<void>[] = []
  while (performance.now() - started < roundMs) {
    const due = ((performance.now() - started) / 1000) * perSecond
    while (looks.length < due) looks.push(visitors.look('1'))
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
  await Promise.all(looks)
  const { latenciesMs } = visitors.take()
  visitors.close()
  return quantile(latenciesMs, 0.99)
}

async function gets(): Promise<number> {
  return Number((await redis.info('commandstats')).match(/cmdstat_get:calls=(\d+)/)?.[1] ?? 0)
}

async function compare(label: string): Promise<{ throughput: number; p99: number }> {
  await pages(protectedShops.ports, 'protected')
  commands.protected = commands.protectedPages = commands.bare = commands.barePages = 0
  const speeds = await interleaved(rounds(3, 5), {
    protected: () => pages(protectedShops.ports, 'protected'),
    bare: () => pages(bareShops.ports, 'bare'),
  })
  const p99s = await interleaved(rounds(3, 5), {
    protected: () => waiting(protectedShops.ports, visitorsPerSecond),
    bare: () => waiting(bareShops.ports, visitorsPerSecond),
  })
  say(
    `${label}: protected ${Math.round(median(speeds.protected))} pages/s p99 ${median(p99s.protected).toFixed(1)} ms, bare ${Math.round(median(speeds.bare))} pages/s p99 ${median(p99s.bare).toFixed(1)} ms`,
  )
  return { throughput: medianRatio(speeds.protected, speeds.bare), p99: medianRatio(p99s.protected, p99s.bare) }
}

const healthy = await compare('healthy Redis')
node.faults.commandsPerSecond = 3000
const saturated = await compare('node held at 3,000 commands/s')
const keptShare = commands.protected / commands.protectedPages / (commands.bare / commands.barePages)
bench.report({
  id: 'page-vs-unprotected',
  ratio: saturated.throughput,
  of: 'pages/s protected',
  to: 'bare',
  note: 'node held at 3,000 commands/s',
})
bench.report({ id: 'page-p99-vs-unprotected', ratio: saturated.p99, of: 'p99 protected', to: 'bare' })
bench.report({
  id: 'healthy-page-vs-unprotected',
  ratio: healthy.throughput,
  of: 'pages/s protected',
  to: 'bare',
  note: 'healthy Redis',
})
bench.report({ id: 'healthy-page-p99-vs-unprotected', ratio: healthy.p99, of: 'p99 protected', to: 'bare' })
bench.report({ id: 'redis-commands-kept-share', value: keptShare, unit: 'of the product key’s commands' })
await protectedShops.stop()
await bareShops.stop()
await hub.close()
await node.close()

// The flood after the last item: with the memory, and without it (each process made to forget).
const now = Math.floor(Date.now() / 1000)
const remembering = new Sale(redis, { ids: new Snowflake({ workerId: 1 }) })
const asking = new Sale(redis, { ids: new Snowflake({ workerId: 2 }), soldOutMemory: { maxAgeMs: 0 } })
await remembering.open({ id: 'gone', begin: now - 10, end: now + 10_000, stock: 0 })
const flood = rounds(10_000, 50_000)
async function rush(sale: Sale): Promise<number> {
  const started = performance.now()
  let next = 0
  await Promise.all(
    Array.from({ length: 200 }, async () => {
      while (next++ < flood) await sale.purchase('gone', `user-${next}`)
    }),
  )
  return (flood / (performance.now() - started)) * 1000
}
await rush(remembering)
const floods = await interleaved(rounds(3, 5), { memory: () => rush(remembering), redis: () => rush(asking) })
bench.report({
  id: 'soldout-vs-redis',
  ratio: medianRatio(floods.memory, floods.redis),
  of: 'refusals/s from memory',
  to: 'asking Redis each time',
})
await remembering.close()
await asking.close()
redis.disconnect()
await server.stop()
rmSync(folder, { recursive: true, force: true })
bench.done()
