import { peek } from '@firebreak/client'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { createClientPool as createPool6, type RedisClientPoolType } from 'redis'
import { createClientPool as createPool5 } from 'redis5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

// A pool of node-redis: the same calls on a bare one say what is right.

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
})
afterEach(() => fixture.close())

type Pool = RedisClientPoolType
type CreatePool = (client: object, options?: object) => Pool

describe.each([
  ['node-redis 6', createPool6 as unknown as CreatePool],
  ['node-redis 5', createPool5 as unknown as CreatePool],
])('%s', (name, createPool) => {
  async function open(options: object = {}, more: object = {}): Promise<Pool> {
    const pool = createPool({ socket: { port: server.port }, ...more }, options)
    pool.on('error', () => {})
    await pool.connect()
    fixture.onClose(async () => pool.isOpen && pool.destroy())
    return pool
  }

  const protectPool = async (options: object = {}, more: object = {}) => fixture.adopt(await open(options, more))

  test('a hot key is answered from memory, whichever way it is asked for', async () => {
    const pool = await protectPool()
    await pool.set('k', 'v')
    await pool.hSet('h', 'f', '1')
    fixture.hub.heat('main', ['k', 'h'])
    await fixture.isServed(() => pool.get('k'))
    await fixture.isServed(() => pool.hGetAll('h'))
    await fixture.isServed(() => pool.execute((client) => client.get('k')))
    await fixture.isServed(() => pool.sendCommand(['GET', 'k']))
    expect(await pool.get('k')).toBe('v')
    expect({ ...(await pool.hGetAll('h')) }).toEqual({ f: '1' })
    expect(await pool.withTypeMapping({ 36: Buffer }).get('k')).toEqual(Buffer.from('v'))
    expect(peek(pool, 'k')).toBe('v')
    await fixture.plain.set('k', 'w')
    await waitFor(async () => (await pool.get('k')) === 'w')
  })

  test('its own clientSideCache is never stale', async () => {
    const pool = await protectPool({ clientSideCache: {} }, { RESP: 3 })
    const own = pool as unknown as { clientSideCache: { stats(): { hitCount: number } } }
    await fixture.plain.set('k', 'first')
    fixture.hub.heat('main', ['k'])
    await waitFor(async () => (await pool.get('k')) === 'first' && own.clientSideCache.stats().hitCount > 0)
    for (let version = 0; version < 50; version++) {
      await pool.set('k', `own ${version}`)
      expect(await pool.get('k')).toBe(`own ${version}`)
      await fixture.plain.set('k', `other ${version}`)
      await waitFor(async () => (await pool.get('k')) === `other ${version}`, { timeoutMs: 5000, everyMs: 1 })
    }
  })

  test('of two pools with different users, none gets what only the other may read', async () => {
    await server.cli('ACL', 'SETUSER', 'reader', 'on', '>pass', '~*', '&*', '+@all')
    await server.cli('ACL', 'SETUSER', 'guest', 'on', '>word', '~open', '&*', '+@all')
    const guestLogin = { username: 'guest', password: 'word' }
    const bare = await open({}, guestLogin)
    const reader = await protectPool({}, { username: 'reader', password: 'pass' })
    const guest = await protectPool({}, guestLogin)
    await reader.set('secret', 'of the reader')
    await reader.set('open', 'to all')
    fixture.hub.heat('main', ['secret', 'open'])
    await fixture.isServed(() => reader.get('secret'))
    const refusal = await bare.get('secret').catch(({ message }) => message)
    expect(refusal).toContain('NOPERM')
    const ways: (() => Promise<unknown>)[] = [
      () => guest.get('secret'),
      () => guest.execute((client) => client.get('secret')),
      () => guest.sendCommand(['GET', 'secret']),
    ]
    for (const way of [...ways, ...ways]) expect(await way().catch(({ message }) => message)).toBe(refusal)
    await fixture.isServed(() => guest.get('open'))
    expect([await guest.get('open'), await reader.get('secret')]).toEqual(['to all', 'of the reader'])
  })

  test('it answers as a bare one does', async () => {
    const scenario = async (pool: Pool) => {
      const seen: unknown[] = []
      const note = async (call: () => Promise<unknown>) => {
        seen.push(
          await call().then(
            (reply) => JSON.stringify(reply),
            (error) => `${(error as Error).name}: ${(error as Error).message}`,
          ),
        )
      }
      await note(() => pool.set('k', '1'))
      await note(() => pool.get('k'))
      await note(() => pool.lPush('k', 'x'))
      await note(() => pool.incr('k'))
      await note(() => pool.get('k'))
      await note(() => pool.multi().set('k', '5').get('k').exec())
      await note(() => pool.multi().get('k').incr('k').execAsPipeline())
      await note(() => pool.get('k'))
      await note(() =>
        pool.execute(async (client) => {
          await client.watch('k')
          const before = await client.get('k')
          await fixture.plain.set('k', '90')
          return client.multi().set('k', `${before}1`).exec()
        }),
      )
      await note(() => pool.get('k'))
      await note(async () => pool.execute(() => Promise.reject(new Error('the callback fails'))))
      await note(() => pool.get(undefined as unknown as string))
      await pool.close()
      await note(() => pool.get('k'))
      return seen
    }
    const bare = await scenario(await open())
    const pool = await protectPool()
    fixture.hub.heat('main', ['k'])
    await fixture.isServed(() => pool.get('k'))
    expect(await scenario(pool)).toEqual(bare)
    expect(bare).toHaveLength(13)
  })

  test('a read behind a write that waits for the only connection sees it', async () => {
    const pool = await protectPool({ minimum: 1, maximum: 1 })
    await pool.set('k', 'old')
    await fixture.makeHot(pool, 'k')
    let release!: () => void
    const blocked = pool.execute(() => new Promise<void>((resolve) => (release = resolve)))
    const write = pool.set('k', 'new')
    const read = pool.get('k')
    release()
    expect(await read).toBe('new')
    await Promise.all([blocked, write])
    await fixture.isServed(() => pool.get('k'))
  })

  test('connections that it lets go are let go here too, and a key prefix is its own', async () => {
    const prefix = name === 'node-redis 6' ? { keyPrefix: 'p:' } : {}
    const pool = await protectPool({ minimum: 1, maximum: 4, cleanupDelay: 1 }, prefix)
    await pool.set('k', 'v')
    fixture.hub.heat('main', ['p:k', 'k'])
    await fixture.isServed(() => pool.get('k'))
    const held = Array.from({ length: 4 }, () =>
      pool.execute(async (client) => {
        await client.blPop('none', 0.05)
        expect(await client.get('keyPrefix' in prefix ? 'p:k' : 'k')).toBe('v')
      }),
    )
    await Promise.all(held)
    await waitFor(() => pool.totalClients === 1, { what: 'the pool to let connections go' })
    expect(await pool.get('k')).toBe('v')
    await pool.close()
  })
})
