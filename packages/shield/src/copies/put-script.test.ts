import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { luaSource } from '../script/lua-source.ts'
import { markerOf, newestOf, ownershipOf } from './own-names.ts'

let server: RedisServer
let redis: Redis
let dump: Buffer
const copy = Buffer.from('k_1')
const keys = [copy, markerOf(copy), ownershipOf(copy), newestOf(copy)].map((name) => Buffer.from(name))

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
beforeEach(async () => {
  await redis.flushall()
  await redis.set('k', 'v')
  dump = (await redis.dumpBuffer('k'))!
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})

const run = (name: string, ...args: (string | number | Buffer)[]) =>
  redis.eval(luaSource(new URL(`./${name}.lua`, import.meta.url)), keys.length, ...keys, ...args)
const put = (version: number) => run('put', version, 'k', 5000, 10_000, 70_000, dump)

test('an older picture that comes late is not written: not over a newer one, nor after its marker or the copy is gone', async () => {
  expect(await put(7)).toBe('put')
  expect(await put(6)).toBe('newer')
  await redis.del(keys[1]!)
  expect(await put(6)).toBe('late')
  expect(await put(7)).toBe('put')
  expect(await run('drop', 'k', 1500)).toBeGreaterThan(0)
  expect(await put(6)).toBe('late')
  expect(await redis.exists(copy)).toBe(0)
  expect(await put(8)).toBe('put')
})

test('nothing of a copy that was removed stays for long', async () => {
  await put(7)
  await run('drop', 'k', 1)
  // Expired or about to be: a millisecond.
  await expect.poll(() => redis.keys('*k_1*')).toEqual([])
})
