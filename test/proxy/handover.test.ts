import { type FirebreakProxy, type ProxyOptions, startProxy } from '@firebreak/proxy'
import { freePort, type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())

const start = (port: number, options: Partial<ProxyOptions>): Promise<FirebreakProxy> =>
  startProxy({ upstream: server.url, port, ...options })

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  const shared = { transport, sharedPort: true, lingerMs: 30_000, drainMs: 1 } as const

  test('a new proxy takes over the port while the old one serves its clients to their end', async () => {
    const port = await freePort()
    const old = await start(port, shared)
    const before = await RawClient.connect(port)
    expect(await before.ask('SET', 'k', 'v')).toBe('+OK\r\n')
    const fresh = await start(port, shared)
    const closed = old.close()
    // The kernel gives the old one no connection any more: every new client is one of the new proxy's.
    for (let index = 0; index < 20; index++) {
      const after = await RawClient.connect(port)
      expect(await after.ask('GET', 'k')).toBe('$1\r\nv\r\n')
      expect(await before.ask('GET', 'k')).toBe('$1\r\nv\r\n')
      await after.close()
    }
    await before.close()
    await closed
    const last = await RawClient.connect(port)
    expect(await last.ask('PING')).toBe('+PONG\r\n')
    await last.close()
    await fresh.close()
  })

  test('who does not leave is ended after the time to linger', async () => {
    const proxy = await start(0, { ...shared, lingerMs: 100 })
    const client = await RawClient.connect(proxy.port)
    expect(await client.ask('PING')).toBe('+PONG\r\n')
    await proxy.close()
    await client.closed
  })

  test('without a shared port the second is refused', async () => {
    const proxy = await start(0, { transport })
    await expect(start(proxy.port, { transport })).rejects.toThrow('cannot listen')
    await proxy.close()
  })
})

test('threads of one proxy share its port already: with several of them it is refused', async () => {
  await expect(start(0, { sharedPort: true, workers: 2 })).rejects.toThrow('leave workers at 1')
})
