import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { DeadLetters } from '../dead-letters/dead-letters.ts'
import { type SaleKeys, saleKeys } from '../sale-keys.ts'
import { Sale } from './sale.ts'

// Redis does not undo what a script did before an error. So an error of any kind has to come before the first change.

let server: RedisServer
let admin: Redis
let shopClient: Redis
let shop: Sale
let made = 0
const ids = { next: () => `order-${++made}` }
const keys = saleKeys('1')

beforeAll(async () => {
  server = await startRedis()
  admin = new Redis(server.port)
  await mayPublish(true)
  shopClient = new Redis({ port: server.port, username: 'shop', password: 'secret' })
  shop = new Sale(shopClient, { ids })
})
afterAll(async () => {
  await shop.close()
  shopClient.disconnect()
  admin.disconnect()
  await server.stop()
})

/** The user that the guide describes, with and without the channels. */
async function mayPublish(isAllowed: boolean): Promise<void> {
  const channels = isAllowed ? ['resetchannels', '&{seckill:*'] : ['resetchannels']
  await admin.acl('SETUSER', 'shop', 'on', '>secret', '~seckill*', '~{seckill:*', '+@all', ...channels)
}

let unpaid: string
let paid: string
let letter: string
beforeEach(async () => {
  await mayPublish(true)
  await admin.flushall()
  const seconds = Math.floor(Date.now() / 1000)
  await shop.open({ id: '1', begin: seconds - 10, end: seconds + 1000, stock: 10 })
  unpaid = await buy('ann')
  paid = await buy('bob')
  await shop.pay('1', paid)
  letter = (await admin.xadd(keys.dead, '*', 'entry', '1-1', 'reason', 'r', 'kind', 'placed', 'order', 'x'))!
})

async function buy(user: string): Promise<string> {
  const result = await shop.purchase('1', user)
  if (result.code !== 'sold') throw new Error(result.code)
  return result.orderId
}

/** All that Redis holds of the sale. */
async function everything(): Promise<Record<string, unknown>> {
  const all: Record<string, unknown> = {}
  for (const key of (await admin.keys('*')).sort()) all[key] = (await admin.dumpBuffer(key))!.toString('base64')
  return all
}

const actions: Record<string, { readonly run: () => Promise<unknown>; readonly touches: readonly (keyof SaleKeys)[] }> =
  {
    'a purchase': {
      run: () => shop.purchase('1', 'eve'),
      touches: ['voucher', 'users', 'holders', 'orders', 'states', 'unpaid'],
    },
    'a payment': { run: () => shop.pay('1', unpaid), touches: ['voucher', 'holders', 'orders', 'states', 'unpaid'] },
    'a cancellation': {
      run: () => shop.cancel('1', unpaid),
      touches: ['voucher', 'users', 'holders', 'orders', 'states', 'unpaid'],
    },
    'a refund': { run: () => shop.refund('1', paid), touches: ['voucher', 'users', 'holders', 'orders', 'states'] },
    'a restock': { run: () => shop.restock('1', 5), touches: ['voucher', 'restocked'] },
    'a replay': { run: () => new DeadLetters(shopClient).replay('1', [letter]), touches: ['dead', 'orders'] },
  }

describe.each(Object.entries(actions))('%s', (_, { run, touches }) => {
  test.each(touches)('changes nothing when the key of %s is of another type', async (name) => {
    await admin.set(keys[name], 'text')
    const before = await everything()
    await expect(run()).rejects.toThrow(/of another type|WRONGTYPE/)
    expect(await everything()).toEqual(before)
  })

  test('changes nothing, and announces no restock, when Redis has no memory for it', async () => {
    const heard: string[] = []
    const subscriber = admin.duplicate()
    await subscriber.subscribe(keys.channel)
    subscriber.on('message', (_, message) => heard.push(message))
    const before = await everything()
    await admin.config('SET', 'maxmemory', '1')
    await expect(run()).rejects.toThrow(/^OOM /)
    await admin.config('SET', 'maxmemory', '0')
    await admin.publish(keys.channel, 'the end')
    await waitFor(() => heard.includes('the end'))
    expect(heard.filter((message) => message.startsWith('restock'))).toEqual([])
    expect(await everything()).toEqual(before)
    subscriber.disconnect()
  })

  test('changes nothing when the Redis user may not publish to the channel', async () => {
    await mayPublish(false)
    const before = await everything()
    await expect(run()).rejects.toThrow(/publish|channel/)
    expect(await everything()).toEqual(before)
    await mayPublish(true)
    await run()
    expect(await everything()).not.toEqual(before)
  })
})
