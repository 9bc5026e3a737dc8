import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { registryKey, saleKeys } from '../sale-keys.ts'
import { SaleBoard } from './sale-board.ts'

let server: RedisServer
let client: Redis

beforeAll(async () => {
  server = await startRedis()
  client = new Redis(server.port)
})
beforeEach(() => client.flushall())
afterAll(async () => {
  client.disconnect()
  await server.stop()
})

async function made(id: string, end: number): Promise<void> {
  await client.sadd(registryKey, id)
  await client.hset(saleKeys(id).voucher, 'begin', 1, 'end', end, 'stock', 1)
}

test('if not all vouchers fit, those that end last are shown, and those with dead letters', async () => {
  for (let index = 1; index <= 30; index++) await made(`v${index}`, 1000 + index)
  await client.xadd(saleKeys('v3').dead, '*', 'reason', 'no room')
  const shown = await new SaleBoard(client).vouchers(4)
  expect(shown.map(({ id, deadLetters }) => `${id} ${deadLetters}`)).toEqual(['v30 0', 'v29 0', 'v28 0', 'v3 1'])
})

test('a key of another type under a voucher’s name hides no other voucher', async () => {
  await made('sound', 2000)
  await client.sadd(registryKey, 'odd')
  await client.set(saleKeys('odd').voucher, 'text')
  await client.set(saleKeys('odd').dead, 'text')
  for (const limit of [1, 10]) {
    const [first] = await new SaleBoard(client).vouchers(limit)
    expect(first).toMatchObject({ id: 'sound', end: 2000 })
  }
})
