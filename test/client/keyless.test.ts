import { protect, shieldOf, unprotect } from '@firebreak/client'
import type { RateLimitStrategy } from '@firebreak/core'
import { type RedisServer, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { type AnyClient, libraries } from './libraries.ts'

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

describe.each(Object.keys(libraries))('%s', (library) => {
  const redisClusterId = `keyless ${library}`
  let client: AnyClient
  let sent: number

  beforeEach(async () => {
    await server.cli('FLUSHALL')
    await server.cli('SET', 'k', 'zero')
    await server.cli('-n', '2', 'SET', 'k', 'two')
    client = await libraries[library]!({ kind: 'standalone', port: server.port, database: 2 })
    const options = { hubs: [hub.url], serviceId: 'shop', redisClusterId, tableFile: false, canaryMs: 0 } as const
    protect(client.raw, { ...options, onWarning() {} })
    await waitFor(() => shieldOf(client.raw)?.isConnected, { what: 'the hub link' })
  })
  afterEach(async () => {
    unprotect(client.raw)
    client.close()
    await server.cli('ACL', 'SETUSER', 'default', '+@all')
  })

  /** Makes the key hot and waits until memory answers its reads. */
  async function makeHot(): Promise<void> {
    hub.heat(redisClusterId, ['k'])
    await waitFor(
      async () => {
        await client.get('k')
        sent = await gets()
        expect(await client.get('k')).toBe('two')
        return (await gets()) === sent
      },
      { what: 'a read to be answered from memory' },
    )
  }

  async function gets(): Promise<number> {
    const stats = await server.cli('INFO', 'commandstats')
    return Number(/cmdstat_get:calls=(\d+)/.exec(stats)?.[1] ?? 0)
  }

  test('RESET takes the connection back to database 0', async () => {
    await makeHot()
    void client.call(['RESET'])
    expect(await client.get('k')).toBe('zero')
    await client.select(2)
    expect(await client.get('k')).toBe('two')
  })

  test('a change of rights by this client holds for its next read', async () => {
    await makeHot()
    await client.call(['ACL', 'SETUSER', 'default', '-get'])
    await expect(client.get('k')).rejects.toThrow('NOPERM')
  })

  test('another user does not read what was read as the first', async () => {
    await server.cli('ACL', 'SETUSER', 'bob', 'on', '>secret', '+@all', '~other')
    await makeHot()
    await client.call(['AUTH', 'bob', 'secret'])
    await expect(client.get('k')).rejects.toThrow('NOPERM')
  })

  /** Waits until memory answers reads of the key with this value. */
  async function isServed(value: string): Promise<void> {
    await waitFor(
      async () => {
        expect(await client.get('k')).toBe(value)
        sent = await gets()
        await client.get('k')
        return (await gets()) === sent
      },
      { what: `${value} to be answered from memory` },
    )
  }

  const failed = (call: Promise<unknown>) => expect(call).rejects.toThrow()

  test('a SELECT in a transaction that is dropped leaves the connection where it is', async () => {
    await makeHot()
    await client.call(['MULTI'])
    await client.select(0)
    await client.call(['DISCARD'])
    expect(await client.get('k')).toBe('two')
    await isServed('two')
    await client.watch('watched')
    await server.cli('-n', '2', 'SET', 'watched', 'changed')
    await client.call(['MULTI'])
    await client.call(['SELECT', '0'])
    expect(await client.call(['EXEC'])).toBeNull()
    expect(await client.get('k')).toBe('two')
    await isServed('two')
  })

  test('a SELECT in a transaction holds once it is carried out', async () => {
    await makeHot()
    const replies = client.multi([
      ['SELECT', '0'],
      ['SET', 'k', 'zero again'],
    ])
    expect(await client.get('k')).toBe('zero again')
    await replies
    await isServed('zero again')
    await client.select(2)
    await isServed('two')
    // One that fails there may have been the only one, or not.
    await client
      .multi([
        ['SELECT', '99'],
        ['SELECT', '0'],
      ])
      .catch(() => {})
    expect(await client.get('k')).toBe('zero again')
  })

  test('a SELECT that fails leaves the connection where it is', async () => {
    await makeHot()
    const failing = failed(client.call(['SELECT', '99']))
    const write = client.set('k', 'two again')
    expect(await client.get('k')).toBe('two again')
    await Promise.all([failing, write])
    await isServed('two again')
    await client.set('k', 'still two')
    expect(await client.get('k')).toBe('still two')
    // Nor do those before and behind it.
    const calls = [client.select(0), failed(client.call(['SELECT', '99']))]
    expect(await client.get('k')).toBe('zero')
    await Promise.all(calls)
    await isServed('zero')
  })

  test('a write behind a SELECT is seen by the read behind it, whichever is answered first', async () => {
    await makeHot()
    for (let version = 0; version < 50; version++) {
      const calls = [client.select(0), client.set('k', `zero ${version}`)]
      expect(await client.get('k')).toBe(`zero ${version}`)
      calls.push(client.select(2))
      expect(await client.get('k')).toBe('two')
      await Promise.all(calls)
    }
  })

  test('a key that is copied here from another database is seen at once', async () => {
    await makeHot()
    for (let version = 0; version < 50; version++) {
      await client.select(0)
      await client.set('from', `v${version}`)
      await client.call(['COPY', 'from', 'k', 'DB', '2', 'REPLACE'])
      await client.select(2)
      expect(await client.get('k')).toBe(`v${version}`)
    }
  })

  test('a read behind a write that a limit held back sees the write', async () => {
    const strategy: RateLimitStrategy = {
      strategy: 'RateLimit',
      algorithm: 'fixedWindow',
      limit: 100_000,
      windowMs: 60_000,
      onLimit: 'stale',
      scope: 'shared',
    }
    hub.heat(redisClusterId, ['k'], { strategy })
    await waitFor(() => shieldOf(client.raw)!.tableVersion.version === hub.version, { what: 'the limit' })
    await waitFor(async () => (await client.get('k')) === 'two', { what: 'a read' })
    for (let version = 0; version < 100; version++) {
      const write = client.set('k', `v${version}`)
      expect(await client.get('k')).toBe(`v${version}`)
      await write
    }
  })
})
