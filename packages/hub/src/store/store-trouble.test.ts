import { startRedis, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { StoreCallError } from '../errors.ts'
import { HubCore } from '../hub-core.ts'
import type { SaleDesk } from '../sale/sale-routes.ts'
import { openHubServices } from '../services/hub-services.ts'
import { startHub } from '../start-hub.ts'
import { openRedisStore } from './open-redis-store.ts'
import { explainStoreTrouble } from './store-trouble.ts'

/** Words that only who knows the library understands. */
const ofLibrary = /enableOfflineQueue|Stream isn't|Connection is closed|max retries|slots cache|ECONN|Command timed out/

test("a store's trouble is told in words of our own", () => {
  const refused = Object.assign(new Error('connect ECONNREFUSED 127.0.0.1:1'), { code: 'ECONNREFUSED' })
  expect(explainStoreTrouble(refused)).toContain('refuses connections')
  expect(explainStoreTrouble(new Error('not connected: the store', { cause: refused }))).toContain(
    'refuses connections',
  )
  expect(explainStoreTrouble(new Error("Stream isn't writeable and enableOfflineQueue options is false"))).toBe(
    'there is no connection',
  )
  expect(explainStoreTrouble(new Error('Command timed out'))).toBe('it does not answer in time')
  const all = Object.assign(new Error('Failed to refresh slots cache.'), { lastNodeError: refused })
  expect(explainStoreTrouble(all)).toContain('refuses connections')
  const reply = Object.assign(new Error('OOM command not allowed'), { name: 'ReplyError' })
  expect(explainStoreTrouble(reply)).toBe('it answered: OOM command not allowed')
  expect(explainStoreTrouble(new Error('disk full'))).toBe('disk full')
})

test('a Redis that goes away is an alarm with its address, without its password and without words of the library', async () => {
  const server = await startRedis({ args: ['--requirepass', 'very-secret'] })
  const url = `redis://:very-secret@127.0.0.1:${server.port}`
  const core = await HubCore.open(await openRedisStore(url, { prefix: 'trouble' }), { loadOf: () => 0 })
  core.start()
  await server.stop()
  const causes = () => core.alarms.list().map(({ id, cause }) => [id, cause] as const)
  await waitFor(() => causes().some(([id]) => id === 'board'))
  const failed = await core.setOff(true, 'ann').then(
    () => '',
    (error: StoreCallError) => error.message,
  )
  await waitFor(() => causes().some(([id]) => id === 'store'))
  for (const [, cause] of causes()) {
    expect(cause).toContain(`redis://:***@127.0.0.1:${server.port}`)
    expect(cause).not.toMatch(ofLibrary)
    expect(cause).not.toContain('very-secret')
  }
  expect(failed).not.toMatch(ofLibrary)
  await core.close()
})

test("so is the trouble of the hub's services: limits, and a sale whose Redis is away", async () => {
  const server = await startRedis()
  const desk = {
    vouchers: () => Promise.reject(new Error("Stream isn't writeable and enableOfflineQueue options is false")),
    orders: async () => [],
    letters: async () => [],
    settle: async () => 0,
  } as unknown as SaleDesk
  const services = await openHubServices({ sale: desk })
  const hub = await startHub({ logLevel: 'silent', storeUrl: server.url, plugins: services.plugins })
  await server.stop()
  const causeOf = (id: string) => hub.core.alarms.list().find((alarm) => alarm.id === id)?.cause
  const [limits, sale] = await waitFor(() => {
    const causes = [causeOf('limits:policy'), causeOf('sale:redis')] as const
    return causes.every((cause) => cause !== undefined) && causes
  })
  expect(limits).toContain(`the Redis that the hubs share (redis://127.0.0.1:${server.port})`)
  expect(sale).toContain('its Redis (--sale-redis) cannot be asked: there is no connection')
  for (const cause of [limits, sale]) expect(cause).not.toMatch(ofLibrary)
  await hub.close()
  await services.close()
})

test('so is a refused change', () => {
  const cause = new Error("Stream isn't writeable and enableOfflineQueue options is false")
  expect(new StoreCallError(cause, true).message).toContain('(there is no connection)')
})
