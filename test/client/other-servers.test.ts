import { peek, protect, unprotect } from '@firebreak/client'
import { keySlot } from '@firebreak/core/commands'
import { freePort, startCluster, startRedis, startSource, TestHub, temporaryFolder, waitFor } from '@firebreak/testkit'
import { Cluster, Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

let hub: TestHub
beforeEach(async () => {
  hub = await TestHub.start()
})
afterEach(() => hub.kill())

function options() {
  return { hubs: [hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false, onWarning: () => {} } as const
}

test('the embedded Valkey is tracked like a real server', async () => {
  const port = await freePort()
  const child = startSource(new URL('./embedded-valkey.ts', import.meta.url), [String(port)])
  await child.printed(/ready/)
  const redis = protect(new Redis(port), options())
  const plain = new Redis(port)
  await plain.set('k', 'v0')
  hub.heat('main', ['k'])
  await waitFor(async () => (await redis.get('k')) && peek(redis, 'k') === 'v0')
  for (let version = 1; version <= 20; version++) {
    await plain.set('k', `v${version}`)
    await waitFor(async () => (await redis.get('k')) === `v${version}` && peek(redis, 'k') === `v${version}`)
  }
  await plain.flushall()
  await waitFor(async () => (await redis.get('k')) === null)
  await waitFor(() => hub.statuses.some(({ watchers }) => watchers.some(({ state }) => state === 'live')))
  unprotect(redis)
  redis.disconnect()
  plain.disconnect()
  await child.stop()
})

test('on a cluster every node has its watcher, and a NIL whose slot moves away is not served on', async () => {
  const cluster = await startCluster({ masters: 3 })
  const redis = protect(new Cluster([...cluster.addresses]), options())
  const plain = new Cluster([...cluster.addresses])
  const keys = Array.from({ length: 12 }, (_, index) => `key:${index}`)
  await Promise.all(keys.map((key) => plain.set(key, 'v0')))
  hub.heat('main', [...keys, 'nothing'])
  const allCached = (value: string) => async () => {
    const values = await Promise.all(keys.map((key) => redis.get(key)))
    return values.every((seen) => seen === value) && keys.every((key) => peek(redis, key) === value)
  }
  await waitFor(allCached('v0'))
  await Promise.all(keys.map((key) => plain.set(key, 'v1')))
  await waitFor(allCached('v1'))
  expect(await redis.pipeline().get(keys[0]!).get(keys[0]!).exec()).toEqual([
    [null, 'v1'],
    [null, 'v1'],
  ])
  await waitFor(() =>
    hub.statuses.some(({ watchers }) => watchers.filter(({ state }) => state === 'live').length === 3),
  )

  await waitFor(async () => (await redis.get('nothing')) === null && peek(redis, 'nothing') === null)
  const slot = String(keySlot('nothing'))
  const ids = await Promise.all(cluster.nodes.map((node) => node.cli('CLUSTER', 'MYID')))
  const owner = redis.slots[Number(slot)]![0]
  const target = ids.findIndex((_, index) => !owner!.endsWith(`:${cluster.nodes[index]!.port}`))
  for (const node of cluster.nodes) await node.cli('CLUSTER', 'SETSLOT', slot, 'NODE', ids[target]!)
  await cluster.nodes[target]!.cli('SET', 'nothing', 'something')
  // No push tells of this: the poll of the slot's owner does.
  await waitFor(async () => (await redis.get('nothing')) === 'something')
  unprotect(redis)
  redis.disconnect()
  plain.disconnect()
  await cluster.stop()
})

test('a password and a database are used by the watcher too', async () => {
  const server = await startRedis({ args: ['--requirepass', 'secret'] })
  const redis = protect(new Redis(server.port, { password: 'secret', db: 3 }), options())
  await redis.set('k', 'three')
  hub.heat('main', ['k'])
  await waitFor(async () => (await redis.get('k')) && peek(redis, 'k') === 'three')
  unprotect(redis)
  redis.disconnect()
  await server.stop()
})

test('a protected client keeps no process alive', async () => {
  const server = await startRedis()
  const path = temporaryFolder('disk')
  // The second time it finds a file from before, which is looked at by another process.
  for (let start = 0; start < 2; start++) {
    const child = startSource(new URL('./short-process.ts', import.meta.url), [String(server.port), hub.url, path])
    await child.printed(/done/)
    expect(await child.exited).toBe(0)
  }
  await server.stop()
})
