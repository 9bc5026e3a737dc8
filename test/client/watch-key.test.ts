import { getOrLoad, protect, shieldOf, unprotect, watchKey } from '@firebreak/client'
import type { RedisClient } from '@firebreak/redis'
import { type RedisServer, startRedis, TestHub, testRule, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { libraries } from './libraries.ts'

let server: RedisServer
let hub: TestHub
beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
})
afterAll(async () => {
  await hub.kill()
  await server.stop()
})

test.each(Object.keys(libraries))('%s: a watched key is counted, known as hot, and loaded once', async (library) => {
  const keyPrefix = library === 'node-redis 5' ? '' : 'app:'
  const client = await libraries[library]!({
    kind: 'standalone',
    port: server.port,
    ...(keyPrefix !== '' && { keyPrefix }),
  })
  const redis = client.raw as RedisClient & object
  const [key, name] = [`row ${library}`, `${keyPrefix}row ${library}`]
  let loads = 0
  const loader = async (wanted: string) => {
    loads++
    return `loaded ${wanted}`
  }
  const plain = watchKey(redis, key)
  // Nothing is counted or hot on a bare client, but it loads.
  plain.access()
  expect(plain.isHot).toBe(false)
  expect(await plain.getOrLoad(loader, { ttlMs: 60_000 })).toBe(`loaded ${key}`)
  expect(await server.cli('GET', name)).toBe(`loaded ${key}`)

  protect(redis, { hubs: [hub.url], serviceId: 'shop', redisClusterId: library, tableFile: false })
  await waitFor(() => shieldOf(redis)!.isConnected)
  const watched = watchKey(redis, key)
  expect(watched.isHot).toBe(false)
  for (let index = 0; index < 7; index++) watched.access()
  watched.access({ isWrite: true, bytes: 100 })
  await waitFor(() => hub.counted(name).count === 8)
  expect(hub.counted(name).writes).toBe(1)
  hub.heat(library, [name])
  await waitFor(() => watched.isHot)
  await waitFor(async () => {
    expect(await watched.getOrLoad(loader, { ttlMs: 60_000 })).toBe(`loaded ${key}`)
    return watched.peek() === `loaded ${key}`
  })
  expect(await getOrLoad(redis, key, loader, { ttlMs: 60_000 })).toBe(`loaded ${key}`)
  expect(loads).toBe(1)
  hub.cool(library, [name])
  await waitFor(() => !watched.isHot)
  unprotect(redis)
  client.close()
})

test('accesses that only the application sees make a key hot by themselves', async () => {
  const client = await libraries['ioredis 6']!({ kind: 'standalone', port: server.port })
  const redis = client.raw as RedisClient & object
  protect(redis, { hubs: [hub.url], serviceId: 'shop', redisClusterId: 'own', tableFile: false })
  await waitFor(() => shieldOf(redis)!.isConnected)
  hub.setRules([testRule(500)])
  const watched = watchKey(redis, 'only mine')
  await waitFor(() => {
    for (let index = 0; index < 100; index++) watched.access()
    return watched.isHot
  })
  unprotect(redis)
  client.close()
})
