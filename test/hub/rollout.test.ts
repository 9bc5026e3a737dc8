import { peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { isInRollout } from '@firebreak/core/rules'
import { startHub } from '@firebreak/hub'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

const ends: (() => unknown)[] = []
let redis: RedisServer
let hub: Awaited<ReturnType<typeof startHub>>
beforeEach(async () => {
  redis = await startRedis()
  ends.push(() => redis.stop())
  hub = await startHub({ logLevel: 'silent' })
  ends.push(() => hub.close())
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const names = Array.from({ length: 8 }, (_, index) => `instance-${index}`)

async function call(method: string, path: string, body?: object): Promise<unknown> {
  const headers = { 'content-type': 'application/json' }
  const init = { method, headers, ...(body !== undefined && { body: JSON.stringify(body) }) }
  const response = await fetch(`${hub.url}${path}`, init)
  expect([path, response.status]).toEqual([path, 200])
  return response.json()
}

/** Processes of one service: each has a shield of its own. */
async function openClients(): Promise<Map<string, Redis>> {
  const clients = new Map(names.map((name) => [name, new Redis(redis.port)]))
  for (const [instanceId, client] of clients) {
    protect(client, {
      hubs: [hub.url],
      serviceId: 'shop',
      redisClusterId: 'main',
      instanceId,
      tableFile: false,
      onWarning() {},
    })
    ends.push(() => {
      unprotect(client)
      client.disconnect()
    })
  }
  await waitFor(() => [...clients.values()].every((client) => shieldOf(client)!.isConnected))
  return clients
}

/** The processes that answer a key from memory. */
async function handlers(clients: Map<string, Redis>, key: string): Promise<string[]> {
  await Promise.all(
    [...clients.values()].map((client) => Promise.all(Array.from({ length: 20 }, () => client.get(key)))),
  )
  return [...clients].filter(([, client]) => peek(client, key) !== undefined).map(([name]) => name)
}

const rule = { prefix: 'hot-', threshold: 100, windowMs: 1000, minHoldMs: 600_000 }
const auditOf = async (what: RegExp) =>
  (await hub.core.store.audit(100)).filter((entry) => entry.who === 'firebreak' && what.test(entry.what))

test('a rule at 50 per cent holds in those processes that its hash chooses, and in all at 100', async () => {
  await call('PUT', '/v1/rules/hot', { ...rule, rollout: 50 })
  const clients = await openClients()
  const chosen = names.filter((name) => isInRollout('hot', 50, name))
  expect(chosen.length).toBeGreaterThan(0)
  expect(chosen.length).toBeLessThan(names.length)
  await waitFor(async () => (await handlers(clients, 'hot-1')).length >= chosen.length)
  expect(await handlers(clients, 'hot-1')).toEqual(chosen)
  // Others that read tables over HTTP have their part in it by their name.
  for (const name of names) {
    const table = await call('GET', `/v1/table?service=shop&instance=${name}`)
    expect(JSON.stringify(table).includes('hot-1')).toBe(chosen.includes(name))
  }
  await call('POST', '/v1/rules/hot/rollout', { percent: 100 })
  await waitFor(async () => (await handlers(clients, 'hot-1')).length === names.length)
  expect(hub.core.alarms.list().filter(({ id }) => id.startsWith('rollout'))).toEqual([])
})

test('steps raise it by themselves while all is well', async () => {
  await call('PUT', '/v1/rules/hot', { ...rule, rollout: { percent: 10, steps: [50, 100], stepMs: 1000 } })
  const clients = await openClients()
  await waitFor(async () => (await handlers(clients, 'hot-1')).length === names.length, { timeoutMs: 30_000 })
  expect(hub.core.rule('hot')!.rollout).toMatchObject({ percent: 100 })
  expect(await auditOf(/change rule hot/)).toHaveLength(2)
})

test('a rule that brings nothing to those that have it is taken from them, with an alarm and a line in the audit', async () => {
  // A cache of one entry for thirty keys in turn: memory never has the value that is asked for.
  const strategy = { strategy: 'LocalCache', cacheSize: 1 }
  const rollout = { percent: 50, steps: [100], stepMs: 3_600_000 }
  await call('PUT', '/v1/rules/hot', { ...rule, threshold: 20, strategy, rollout })
  const clients = await openClients()
  const keys = Array.from({ length: 30 }, (_, index) => `hot-${index}`)
  await waitFor(
    async () => {
      await Promise.all([...clients.values()].map((client) => Promise.all(keys.map((key) => client.get(key)))))
      return hub.core.rule('hot')!.rollout?.stopped !== undefined
    },
    { timeoutMs: 60_000, everyMs: 5 },
  )
  expect(hub.core.rule('hot')!.rollout).toEqual({
    percent: 0,
    stepMs: 3_600_000,
    stopped: expect.stringMatching(/^at 50 %: .* answered from memory/),
  })
  await waitFor(() => hub.core.alarms.list().some(({ id }) => id === 'rollout:hot'))
  expect(await auditOf(/change rule hot/)).toHaveLength(1)
  await waitFor(async () => (await handlers(clients, 'hot-1')).length === 0)
  await call('POST', '/v1/rules/hot/rollout', { percent: 100 })
  await waitFor(() => !hub.core.alarms.list().some(({ id }) => id === 'rollout:hot'))
  await waitFor(async () => (await handlers(clients, 'hot-1')).length === names.length)
})
