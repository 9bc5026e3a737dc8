import { protect, shieldOf } from '@firebreak/client'
import { systemRuntime } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { type Hub, type HubOptions, openRedisStore, startHub } from '@firebreak/hub'
import { FaultProxy, type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

let server: RedisServer
let proxy: FaultProxy
let hubs: Hub[]
let client: Redis

beforeEach(async () => {
  server = await startRedis()
  proxy = await FaultProxy.start(server.port)
  proxy.faults.refusesConnections = true
  hubs = []
  client = new Redis(server.port)
})
afterEach(async () => {
  shieldOf(client)?.close()
  client.disconnect()
  // A hub that never heard its store has something to write to it.
  proxy.faults.refusesConnections = false
  proxy.faults.isBlackHole = false
  await Promise.all(hubs.map((hub) => hub.close()))
  await proxy.close()
  await server.stop()
})

async function start(port: number, options: HubOptions = {}): Promise<Hub> {
  const hub = await startHub({ storeUrl: `redis://127.0.0.1:${port}`, logLevel: 'silent', ...options })
  hubs.push(hub)
  return hub
}

const rule = (id: string, threshold = 100) => parseRule({ id, prefix: id, threshold })
const fileRules = [{ id: 'file', prefix: 'f', threshold: 1 }]
const idsOf = ({ core }: Hub) => core.rules().rules.map(({ id }) => id)
const ready = async ({ url }: Hub) => {
  const answer = await fetch(`${url}/readyz`)
  return { status: answer.status, ...((await answer.json()) as { reason?: string }) }
}

test('a hub starts while its store is away, says so, and takes over what the store has when it comes', async () => {
  const store = await openRedisStore(server.url)
  await store.saveRule(rule('people', 7))
  await store.saveSwitch(true)
  const before = await store.load()
  const hub = await start(proxy.port, { initialRules: fileRules })
  expect(await ready(hub)).toMatchObject({
    status: 503,
    reason: expect.stringMatching(/has not answered since this hub started$/),
  })
  expect(hub.core.alarms.list()).toContainEqual(
    expect.objectContaining({
      id: 'board',
      cause: expect.stringMatching(/has not answered since .*: the connection was reset$/),
    }),
  )
  await expect(hub.core.putRule(rule('x'), 'ann')).rejects.toMatchObject({ code: 'FB_STORE_AWAY' })
  proxy.faults.refusesConnections = false
  await waitFor(async () => (await ready(hub)).status === 200)
  expect(idsOf(hub)).toEqual(['people'])
  expect(hub.core.delivery.isOff).toBe(true)
  await hub.core.stored()
  // Nothing of it was written over, by the file or by what the hub began with.
  expect(await store.load()).toMatchObject({ ...before, versionFloor: expect.any(Number) })
  await store.close()
})

test('a hub that starts while its store is frozen comes up too, and fills an empty one with its file', async () => {
  proxy.faults.refusesConnections = false
  proxy.faults.isBlackHole = true
  const hub = await start(proxy.port, { initialRules: fileRules })
  expect((await ready(hub)).status).toBe(503)
  proxy.faults.isBlackHole = false
  proxy.cut()
  await waitFor(() => idsOf(hub).join() === 'file', { timeoutMs: 10_000 })
  await waitFor(async () => (await ready(hub)).status === 200)
  await waitFor(async () => (await hub.core.store.audit(9)).length > 0)
  expect((await hub.core.store.audit(9)).map(({ what }) => what)).toEqual(['add rule file'])
}, 20_000)

test('a hub that knows no rules yet takes no sensors, whose table and switch stay; one thrown there reaches them', async () => {
  const [first, unheard] = [await start(server.port), await start(proxy.port)]
  await first.core.setOff(true, 'ann')
  // The first of the list.
  const runtime = { ...systemRuntime, random: () => 0 }
  const options = { hubs: [unheard.url, first.url], serviceId: 'shop', tableFile: false as const, runtime }
  protect(client, { ...options, onWarning: () => {} })
  await waitFor(() => first.core.fleet.hosts.counts().connected === 1 && shieldOf(client)!.isOff)
  expect(unheard.core.fleet.hosts.counts().connected).toBe(0)
  await first.core.setOff(false, 'ann')
  await waitFor(() => !shieldOf(client)!.isOff)
  hubs.splice(hubs.indexOf(first), 1)
  await first.close()
  await waitFor(() => !shieldOf(client)!.isConnected)
  expect(await unheard.core.setOff(true, 'ann')).toBe(false)
  await waitFor(() => shieldOf(client)!.isOff)
  proxy.faults.refusesConnections = false
  await waitFor(async () => (await ready(unheard)).status === 200)
  await unheard.core.stored()
  expect((await unheard.core.store.load()).isOff).toBe(true)
  expect(shieldOf(client)!.isOff).toBe(true)
})

test('a server that answers and refuses the hub is a wrong setting, told of at the start', async () => {
  await server.cli('CONFIG', 'SET', 'requirepass', 'secret')
  await expect(start(server.port)).rejects.toMatchObject({ code: 'FB_HUB_STORE' })
})
