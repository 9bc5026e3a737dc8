import { registryKey } from '@firebreak/sale'
import { freePort, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { expect, test } from 'vitest'
import { openSaleDesk } from './sale-desk.ts'

test('a Redis that nobody named for a sale may be away, but not once it held one', async () => {
  const server = await startRedis()
  const client = new Redis(server.url, { retryStrategy: () => null })
  client.on('error', () => {})
  const unused = `redis://127.0.0.1:${await freePort()}`
  const named = openSaleDesk(unused)
  const assumed = openSaleDesk(unused, { isAssumed: true })
  await expect(named.vouchers()).rejects.toThrow()
  expect(await assumed.vouchers()).toEqual([])
  const used = openSaleDesk(server.url, { isAssumed: true })
  await client.sadd(registryKey, 'v1')
  expect(await used.vouchers()).toHaveLength(1)
  await server.stop()
  await expect(used.vouchers()).rejects.toThrow()
  for (const desk of [named, assumed, used]) desk.close()
  client.disconnect()
})
