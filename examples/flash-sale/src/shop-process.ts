// One process of the shop: node shop-process.ts '{"redisUrl":…}'. Prints its port, ends with SIGTERM.
import { protect, unprotect } from '@firebreak/client'
import { Snowflake } from '@firebreak/ids'
import { OrderWorker, Sale, sqliteOrderStore } from '@firebreak/sale'
import { Redis } from 'ioredis'
import { makeShop } from './shop.ts'

/** How a shop process is started. */
export interface ShopProcessOptions {
  readonly redisUrl: string
  /** Where the product pages are read from, where that is another way to the same Redis. @default redisUrl */
  readonly pageRedisUrl?: string
  /** The hub; without one the client stays bare. */
  readonly hubUrl?: string
  /** Names the worker and the ids: 0 to 1023, each process its own. */
  readonly number: number
  readonly storeFile: string
  readonly triesPerUser?: number
}

const options = JSON.parse(process.argv[2]!) as ShopProcessOptions
const redis = new Redis(options.redisUrl)
const pages = new Redis(options.pageRedisUrl ?? options.redisUrl)
for (const client of [redis, pages]) client.on('error', () => {})
if (options.hubUrl !== undefined) {
  protect(pages, {
    hubs: [options.hubUrl],
    serviceId: 'flash-sale',
    instanceId: `shop-${options.number}`,
    redisClusterId: 'shop',
    tableFile: false,
  })
}
const store = await sqliteOrderStore(options.storeFile)
await store.migrate()
const sale = new Sale(redis, { ids: new Snowflake({ workerId: options.number }) })
const worker = new OrderWorker(redis, {
  store,
  name: `shop-${options.number}-${process.pid}`,
  claimAfterMs: 2000,
  scanMs: 500,
})
await worker.start()
const shop = makeShop({
  redis: pages,
  sale,
  store,
  ...(options.triesPerUser !== undefined && { triesPerUser: options.triesPerUser }),
})
await shop.listen({ host: '127.0.0.1', port: 0 })
const address = shop.server.address() as { port: number }
process.stdout.write(`shop ${options.number} on port ${address.port}\n`)

process.on('SIGTERM', async () => {
  await shop.close()
  await worker.close()
  await sale.close()
  await store.close()
  unprotect(pages)
  process.exit(0)
})
// The parent holds our stdin: when it is gone, so are we.
process.stdin.on('end', () => process.exit(0)).resume()
