// `npm run demo`: a flash sale of about a minute on the running `firebreak up`; with `--incident`, a night's incident.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { KeyDetail, Overview } from '@firebreak/core'
import { keyText } from '@firebreak/core'
import { Snowflake } from '@firebreak/ids'
import { Sale } from '@firebreak/sale'
import { dataFolderOf, readRunning } from 'firebreak/cli'
import { Redis } from 'ioredis'
import { playIncident } from './incident.ts'
import { ShopFleet } from './shop-fleet.ts'
import { quantile, type VisitorCounts, Visitors } from './visitors.ts'

const running = readRunning(dataFolderOf(process.env))
if (running === undefined) {
  process.stderr.write(
    'The demo needs a running Firebreak: start "npm start" in another terminal, then run this again.\n',
  )
  process.exit(1)
}

if (process.argv.includes('--incident')) {
  const interrupted = new AbortController()
  for (const name of ['SIGINT', 'SIGTERM'] as const) process.on(name, () => interrupted.abort())
  const { hubUrl, redisUrl } = running
  const seconds = Number(process.env['FIREBREAK_DEMO_SECONDS'] ?? 300)
  await playIncident({ hubUrl, redisUrl, seconds, signal: interrupted.signal })
  process.exit(0)
}

const seconds = Number(process.env['FIREBREAK_DEMO_SECONDS'] ?? 60)
const stock = 100
const product = '100'
const productKey = `product:${product}`
const voucher = `demo-${Date.now()}`

/** The parts of a sale: a quiet time, the opening, a long tail. Requests a second, and how many of them try to buy. */
const phases = [
  { name: 'quiet', share: 0.2, looksPerSecond: 100, buysPerSecond: 0 },
  { name: 'the sale opens', share: 0.45, looksPerSecond: 2500, buysPerSecond: 300 },
  { name: 'the long tail', share: 0.35, looksPerSecond: 200, buysPerSecond: 20 },
]

const redis = new Redis(running.redisUrl)
const folder = mkdtempSync(join(tmpdir(), 'firebreak-demo-'))
const fleet = await ShopFleet.start(
  2,
  { redisUrl: running.redisUrl, hubUrl: running.hubUrl, storeFile: join(folder, 'orders.sqlite') },
  900,
)
const visitors = new Visitors(fleet.ports)
const sale = new Sale(redis, { ids: new Snowflake({ workerId: 1000 }) })
const totals = { requests: 0, pages: 0, sold: 0, limited: 0, refused: 0, failed: 0, latenciesMs: [] as number[] }
const local = { hits: 0, reads: 0 }

await redis.set(productKey, JSON.stringify({ id: product, name: 'The thing everybody wants', price: 9.99 }))
const nowSeconds = Math.floor(Date.now() / 1000)
await sale.open({ id: voucher, begin: nowSeconds, end: nowSeconds + seconds + 60, stock })
process.stdout.write(`A flash sale of ${stock} items on ${running.redisUrl}. Watch it: ${running.hubUrl}\n\n`)
process.stdout.write('phase            requests/s  sold  limited/s   p99 ms   the product key\n')

let isEnded = false
for (const name of ['SIGINT', 'SIGTERM'] as const) {
  process.on(name, () => {
    isEnded = true
  })
}
let user = 0
for (const phase of phases) {
  const endAt = performance.now() + seconds * 1000 * phase.share
  while (performance.now() < endAt && !isEnded) await oneSecond(phase)
}
await finish()

async function oneSecond(phase: (typeof phases)[number]): Promise<void> {
  const started = performance.now()
  let looks = 0
  let buys = 0
  while (performance.now() - started < 1000 && !isEnded) {
    const share = (performance.now() - started) / 1000
    for (; looks < phase.looksPerSecond * share && !visitors.isBusy; looks++) void visitors.look(product)
    for (; buys < phase.buysPerSecond * share && !visitors.isBusy; buys++) oneBuyer()
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  const counts = visitors.take()
  add(counts)
  process.stdout.write(`${line(phase.name, counts, await keyLine())}\n`)
}

/** Of ten who want to buy, six are people, three click twice or more, one is a robot that ignores the challenge. */
function oneBuyer(): void {
  const kind = user++ % 10
  if (kind < 6) void visitors.buy(voucher, `user-${user}`)
  else if (kind < 9) for (let click = 0; click < 3; click++) void visitors.buy(voucher, `clicker-${user}`)
  else for (let attempt = 0; attempt < 5; attempt++) void visitors.buy(voucher, `bot-${user % 50}`, '')
}

function add(counts: VisitorCounts): void {
  totals.requests += counts.requests
  totals.pages += counts.pages
  totals.sold += counts.sold
  totals.limited += counts.limited
  totals.refused += counts.refused
  totals.failed += counts.failed
  totals.latenciesMs.push(...counts.latenciesMs)
}

/** What the hub says of the product key. */
async function keyLine(): Promise<string> {
  try {
    const response = await fetch(`${running!.hubUrl}/v1/keys/shop/${encodeURIComponent(keyText(productKey))}`)
    if (!response.ok) return 'cold'
    const key = (await response.json()) as KeyDetail
    const handled =
      key.strategy === null
        ? ''
        : `, ${key.strategy.strategy}, ${Math.round((key.effect?.localHitRate ?? 0) * 100)} % from memory`
    return `${key.state}, ${Math.round(key.ratePerSecond)}/s${handled}`
  } catch {
    return 'the hub does not answer'
  }
}

function line(name: string, counts: VisitorCounts, key: string): string {
  const cells = [
    name.padEnd(16),
    String(counts.requests).padStart(10),
    String(totals.sold).padStart(5),
    String(counts.limited).padStart(10),
    quantile(counts.latenciesMs, 0.99).toFixed(1).padStart(8),
  ]
  return `${cells.join(' ')}   ${key}`
}

async function finish(): Promise<void> {
  const overview = (await (await fetch(`${running!.hubUrl}/v1/overview`)).json()) as Overview
  for (const point of overview.traffic) {
    local.hits += point.local
    local.reads += point.local + point.redis + point.copies
  }
  const left = await sale.stock(voucher)
  const oversold = Math.max(0, totals.sold - stock)
  const count = (value: number) => value.toLocaleString('en-US')
  process.stdout.write(`
What happened
  requests             ${count(totals.requests)}  (${count(totals.failed)} failed)
  product pages        ${count(totals.pages)}
  reads from memory    ${count(local.hits)} of ${count(local.reads)}: so many Redis operations saved
  limited              ${count(totals.limited)} tries of double-clickers and the like, ${count(totals.refused)} of bots
  sold                 ${count(totals.sold)} of ${stock}, ${left?.buyers ?? 0} buyers, ${left?.stock ?? '?'} left
  oversold             ${oversold}
  p50 / p99            ${quantile(totals.latenciesMs, 0.5).toFixed(1)} / ${quantile(totals.latenciesMs, 0.99).toFixed(1)} ms
`)
  visitors.close()
  await sale.close()
  await fleet.stop()
  redis.disconnect()
  rmSync(folder, { recursive: true, force: true })
  process.exit(oversold > 0 ? 1 : 0)
}
