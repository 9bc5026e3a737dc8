import { peek, protect, unprotect } from '@firebreak/client'
import { startProxy } from '@firebreak/proxy'
import { isAtLeast, type RedisServer, redisKind, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, beforeAll, expect, test } from 'vitest'

/** The restrictions of managed servers, by an ACL. Before 7.0 an ACL cannot revoke a single subcommand. */
const tracking = isAtLeast(redisKind(), [7, 0]) ? '-client|tracking' : '-client'
const forbidden = ['-config', '-monitor', tracking, '-psync', '-sync', '-replconf']

let server: RedisServer
let hub: TestHub
beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
  await server.cli('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', ...forbidden)
})
afterAll(async () => {
  await hub.kill()
  await server.stop()
})

const login = { username: 'app', password: 'secret' }

test('a client that may not use tracking is protected for moments at a time, and sees what others write', async () => {
  const warnings: string[] = []
  const redis = protect(new Redis(server.port, login), {
    hubs: [hub.url],
    serviceId: 'shop',
    redisClusterId: 'main',
    tableFile: false,
    onWarning: ({ kind }) => warnings.push(kind),
  })
  const plain = new Redis(server.port)
  await plain.set('k', 'v0')
  hub.heat('main', ['k'])
  await waitFor(async () => (await redis.get('k')) === 'v0' && peek(redis, 'k') === 'v0')
  for (let version = 1; version <= 3; version++) {
    await plain.set('k', `v${version}`)
    await waitFor(async () => (await redis.get('k')) === `v${version}`)
  }
  await redis.set('k', 'own')
  expect(await redis.get('k')).toBe('own')
  expect(warnings.length).toBeGreaterThan(0)
  unprotect(redis)
  redis.disconnect()
  plain.disconnect()
})

test('a proxy passes the server’s refusals on unchanged, and serves everything else', async () => {
  const proxy = await startProxy({ upstream: server.url, port: 0, drainMs: 1 })
  const through = new Redis(proxy.port, login)
  const direct = new Redis(server.port, login)
  for (const args of [
    ['CONFIG', 'GET', 'maxmemory'],
    ['PSYNC', '?', '-1'],
    ['REPLCONF', 'capa', 'eof'],
  ]) {
    const [name, ...rest] = args as [string, ...string[]]
    const said = await direct.call(name, ...rest).catch(({ message }) => message)
    expect(said).toContain('NOPERM')
    expect(await through.call(name, ...rest).catch(({ message }) => message)).toBe(said)
  }
  await through.set('p', 'v')
  expect(await through.get('p')).toBe('v')
  through.disconnect()
  direct.disconnect()
  await proxy.close()
})
