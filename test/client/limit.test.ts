import { KeyLimitedError, peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { keyText, type RateLimitStrategy } from '@firebreak/core'
import { type RedisServer, startRedis, TestHub, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
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

const perMinute: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'fixedWindow',
  limit: 5,
  windowMs: 60_000,
  onLimit: 'reject',
  scope: 'process',
}

describe.each(Object.keys(libraries))('%s', (library) => {
  const redisClusterId = `limit ${library}`
  const clients: AnyClient[] = []
  const place = () => ({ kind: 'standalone', port: server.port }) as const
  const named = (name: string) => `${library}:${name}`

  async function open(options: object = {}): Promise<AnyClient> {
    const client = await libraries[library]!(place())
    protect(client.raw, {
      hubs: [hub.url],
      serviceId: 'shop',
      redisClusterId,
      tableFile: false,
      onWarning() {},
      ...options,
    })
    clients.push(client)
    await waitFor(() => shieldOf(client.raw)?.isConnected)
    return client
  }

  afterEach(() => {
    for (const client of clients.splice(0)) {
      unprotect(client.raw)
      client.close()
    }
  })

  /** Puts the limit in force and waits until every client has it. */
  async function limit(key: string, strategy: RateLimitStrategy, among: readonly AnyClient[]): Promise<void> {
    hub.heat(redisClusterId, [key], { strategy })
    await waitFor(() => among.every(({ raw }) => shieldOf(raw)!.tableVersion.version === hub.version))
  }

  async function outcomes(calls: readonly Promise<unknown>[]): Promise<{ values: unknown[]; errors: unknown[] }> {
    const settled = await Promise.allSettled(calls)
    return {
      values: settled.filter(({ status }) => status === 'fulfilled').map((one) => (one as { value: unknown }).value),
      errors: settled.filter(({ status }) => status === 'rejected').map((one) => (one as { reason: unknown }).reason),
    }
  }

  test('reject: what is over the limit fails with an error that says when to try again', async () => {
    const client = await open()
    const statusesBefore = hub.statuses.length
    const key = named('reject')
    await client.set(key, 'v')
    await limit(key, perMinute, [client])
    const { values, errors } = await outcomes(Array.from({ length: 12 }, () => client.get(key)))
    expect(values).toEqual(['v', 'v', 'v', 'v', 'v'])
    expect(errors).toHaveLength(7)
    for (const error of errors) {
      expect(error).toBeInstanceOf(KeyLimitedError)
      expect(error).toMatchObject({ code: 'FB_KEY_LIMITED', key })
      expect((error as KeyLimitedError).retryAfterMs).toBeGreaterThan(0)
    }
    await expect(client.set(key, 'too much')).rejects.toBeInstanceOf(KeyLimitedError)
    const piped = await outcomes([client.pipeline([['GET', key], ['PING']])])
    expect(JSON.stringify([piped.values, piped.errors.map(String)])).toMatch(/FB_KEY_LIMITED|over its limit/)
    expect(await client.get(named('another'))).toBeNull()
    const told = () => hub.statuses.flatMap(({ keys }) => keys).filter((effect) => effect.key === keyText(key))
    await waitFor(() => told().reduce((sum, { limited }) => sum + limited, 0) === 9)
    const counted = hub.statuses.slice(statusesBefore).reduce((sum, { counters }) => sum + counters.limited, 0)
    expect(counted).toBe(9)
    hub.cool(redisClusterId, [key])
    await waitFor(async () => (await client.get(key).catch(() => undefined)) === 'v')
  })

  test('a transaction is not torn by a limit', async () => {
    const client = await open()
    const key = named('multi')
    await limit(key, { ...perMinute, limit: 1 }, [client])
    const replies = JSON.stringify(
      await client.multi([
        ['SET', key, 'a'],
        ['GET', key],
        ['SET', key, 'b'],
      ]),
    )
    expect(replies).not.toContain('limit')
    expect(replies).toContain('"a"')
  })

  test('process: each takes its share of the limit', async () => {
    const client = await open({ limitProcesses: 2 })
    const key = named('share')
    await limit(key, { ...perMinute, limit: 8 }, [client])
    const { values } = await outcomes(Array.from({ length: 12 }, () => client.get(key)))
    expect(values).toHaveLength(4)
  })

  test('wait: accesses stand in a line, and beyond its bound they are refused', async () => {
    const client = await open({ maxLimitWaiting: 6, maxLimitWaitMs: 60_000 })
    const key = named('wait')
    await client.set(key, 'v')
    await limit(key, { ...perMinute, algorithm: 'tokenBucket', limit: 4, windowMs: 1000, onLimit: 'wait' }, [client])
    const { values, errors } = await outcomes(Array.from({ length: 14 }, () => client.get(key)))
    expect(values).toEqual(Array.from({ length: 10 }, () => 'v'))
    expect(errors).toHaveLength(4)
    expect(errors[0]).toBeInstanceOf(KeyLimitedError)
  })

  test.each(['the key cools', 'its strategy changes', 'the kill switch is turned on'])(
    'wait: who waits proceeds at once, in order, when %s',
    async (cause) => {
      const key = named(cause)
      const client = await open({ maxLimitWaitMs: 600_000 })
      await client.set(key, 'first')
      await limit(key, { ...perMinute, limit: 1, windowMs: 300_000, onLimit: 'wait' }, [client])
      expect(await client.get(key)).toBe('first')
      const held = Promise.all([client.set(key, 'second'), client.get(key)])
      if (cause === 'the key cools') hub.cool(redisClusterId, [key])
      else if (cause === 'its strategy changes') hub.heat(redisClusterId, [key])
      else hub.setOff(true)
      try {
        // Not after five minutes.
        expect((await held)[1]).toBe('second')
      } finally {
        hub.setOff(false)
      }
    },
  )

  test('wait: what is held back reaches the database that it was sent to', async () => {
    const client = await open({ maxLimitWaitMs: 20_000 })
    const key = named('held')
    await limit(key, { ...perMinute, limit: 1, onLimit: 'wait' }, [client])
    await client.set(key, 'first')
    const held = client.set(key, 'second')
    await client.select(3)
    expect(await held).toBe('OK')
    expect(await client.get(named('unlimited'))).toBeNull()
    expect(await server.cli('-n', '3', 'EXISTS', key)).toBe('0')
    expect(await server.cli('GET', key)).toBe('second')
    await client.select(0)
    // Nor does a transaction that is sent word by word take it in, or wait for it.
    const behind = client.set(key, 'third')
    await client.call(['MULTI'])
    expect(await behind).toBe('OK')
    expect(await client.call(['EXEC'])).toEqual([])
  })

  test('wait: a transaction that is sent as one lets nothing past the limit', async () => {
    const client = await open({ maxLimitWaitMs: 20_000 })
    const key = named('past')
    await limit(key, { ...perMinute, limit: 1, onLimit: 'wait' }, [client])
    await client.set(key, 'first')
    const held = client.set(key, 'second')
    held.catch(() => {})
    await client.multi([['SET', named('other'), 'v']])
    expect(await server.cli('GET', key)).toBe('first')
  })

  test('stale: reads over the limit get the last reply, writes are refused', async () => {
    const client = await open()
    const bare = await libraries[library]!(place())
    clients.push(bare)
    const key = named('stale')
    await bare.set(key, 'old')
    // Replies are kept once the watcher's connection stands.
    hub.heat(redisClusterId, [key])
    await waitFor(async () => (await client.get(key)) !== null && peek(client.raw, key) === 'old')
    await limit(key, { ...perMinute, limit: 4, onLimit: 'stale' }, [client])
    for (let index = 0; index < 4; index++) expect(await client.get(key)).toBe('old')
    await bare.set(key, 'new')
    expect(await client.get(key)).toBe('old')
    expect(await client.getBuffer(key)).toEqual(Buffer.from('old'))
    await expect(client.set(key, 'refused')).rejects.toBeInstanceOf(KeyLimitedError)
    // A read that was never answered has no last reply.
    await expect(client.call(['STRLEN', key])).rejects.toBeInstanceOf(KeyLimitedError)
  })

  test('shared: all processes together get the limit exactly', async () => {
    const both = await Promise.all(['one', 'two'].map((instanceId) => open({ instanceId, limitDeadlineMs: 30_000 })))
    const key = named('shared')
    await both[0]!.set(key, 'v')
    await limit(key, { ...perMinute, limit: 10, scope: 'shared' }, both)
    const { values, errors } = await outcomes(
      both.flatMap((client) => Array.from({ length: 15 }, () => client.get(key))),
    )
    expect(values).toHaveLength(10)
    expect(errors).toHaveLength(20)
    expect(errors[0]).toBeInstanceOf(KeyLimitedError)
  })
})

test.each(Object.keys(libraries).filter((library) => library.startsWith('node-redis')))(
  '%s: a command that is aborted leaves the line of its limit',
  async (library) => {
    const client = await libraries[library]!({ kind: 'standalone', port: server.port })
    const redisClusterId = `abort ${library}`
    const options = { redisClusterId, tableFile: false, maxLimitWaitMs: 120_000 } as const
    protect(client.raw, { ...options, hubs: [hub.url], serviceId: 'shop' })
    await waitFor(() => shieldOf(client.raw)?.isConnected)
    const strategy: RateLimitStrategy = { ...perMinute, limit: 1, onLimit: 'wait' }
    hub.heat(redisClusterId, ['k'], { strategy })
    await waitFor(() => shieldOf(client.raw)!.tableVersion.version === hub.version)
    await client.get('k')
    const leaving = new AbortController()
    const raw = client.raw as { sendCommand(args: string[], options: object): Promise<unknown> }
    const waiting = raw.sendCommand(['GET', 'k'], { abortSignal: leaving.signal })
    leaving.abort()
    await expect(waiting).rejects.toThrow('The command was aborted')
    unprotect(client.raw)
    client.close()
  },
)
