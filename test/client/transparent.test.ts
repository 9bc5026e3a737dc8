import { tracingChannel } from 'node:diagnostics_channel'
import { protect } from '@firebreak/client'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { createClient as createClient6 } from 'redis'
import { createClient as createClient5 } from 'redis5'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'
import { type AnyClient, libraries } from './libraries.ts'

// Whatever a bare client does, a protected one does, hot or cold: a bare client beside it is the judge.

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  await fixture.plain.set('k', 'v')
})
afterEach(() => fixture.close())

/** What a call came to, thrown at once or later. */
async function outcome(call: () => unknown): Promise<unknown> {
  try {
    return { reply: await call() }
  } catch (error) {
    const { name, message } = error as Error
    return { error: name, message }
  }
}

describe.each([
  ['node-redis 6', createClient6],
  ['node-redis 5', createClient5 as unknown as typeof createClient6],
])('%s', (_name, createClient) => {
  test('its own clientSideCache is never stale', async () => {
    const client = createClient({ socket: { port: server.port }, RESP: 3, clientSideCache: {} })
    client.on('error', () => {})
    await client.connect()
    await fixture.adopt(client)
    fixture.onClose(async () => client.isOpen && client.destroy())
    fixture.hub.heat('main', ['k'])
    await waitFor(async () => (await client.get('k')) === 'v' && (client.clientSideCache?.stats().hitCount ?? 0) > 0)
    for (let version = 0; version < 100; version++) {
      await client.set('k', `own ${version}`)
      expect(await client.get('k')).toBe(`own ${version}`)
      await fixture.plain.set('k', `other ${version}`)
      await waitFor(async () => (await client.get('k')) === `other ${version}`, { timeoutMs: 2000, everyMs: 1 })
    }
  })
})

describe.each(Object.keys(libraries))('%s', (name) => {
  const open = () => libraries[name]!({ kind: 'standalone', port: server.port })

  /** The same on a bare client and on a protected one whose key is in memory. */
  async function same(what: (client: AnyClient) => unknown): Promise<void> {
    const bare = await open()
    const client = await open()
    await fixture.adopt(client.raw)
    await fixture.makeHot(client, 'k')
    await bare.get('k')
    const expected = await outcome(() => what(bare))
    expect(await outcome(() => what(client))).toEqual(expected)
    await outcome(() => bare.close())
  }

  const get = (client: AnyClient, ...args: unknown[]) =>
    (client.raw as { get(...args: unknown[]): unknown }).get(...args)

  test.each([[[]], [[undefined]], [[null]], [[5]], [[{}]], [['k', 'more']], [['k', undefined]], [[['k']]]])(
    'get with the arguments %j',
    (args) => same((client) => get(client, ...args)),
  )

  test('a callback of get', () =>
    same(
      (client) =>
        new Promise((resolve) => {
          const called = get(client, 'k', (error: Error | null, reply: unknown) => resolve([error, reply]))
          Promise.resolve(called).catch((error) => resolve(String(error)))
          if (!name.startsWith('io')) resolve('none')
        }),
    ))

  test('a read once the client was told to disconnect', () =>
    same((client) => {
      client.close()
      return client.get('k')
    }))

  test('a read while it listens to channels', () =>
    same(async (client) => {
      const subscriber = client.raw as { subscribe(channel: string, listener?: () => void): Promise<unknown> }
      await (name.startsWith('io') ? subscriber.subscribe('c') : subscriber.subscribe('c', () => {}))
      const before = await fixture.calls('get')
      const reply = await outcome(() => client.get('k'))
      return [reply, (await fixture.calls('get')) - before]
    }))

  // ioredis knows no signals.
  if (name.startsWith('node-redis')) {
    test('a read with a signal: aborted before, after, not at all', () =>
      same(async (client) => {
        const raw = client.raw as {
          withAbortSignal(signal: AbortSignal): { get(key: string): Promise<unknown>; set(...args: string[]): unknown }
        }
        const later = new AbortController()
        const late = outcome(() => raw.withAbortSignal(later.signal).get('k'))
        later.abort()
        return [
          await outcome(() => raw.withAbortSignal(AbortSignal.abort()).get('k')),
          await late,
          await outcome(() => raw.withAbortSignal(new AbortController().signal).get('k')),
          await outcome(() => client.get('k')),
        ]
      }))
  }

  test('traces show every command', async () => {
    const client = await open()
    await fixture.adopt(client.raw)
    await fixture.makeHot(client, 'k')
    const seen: unknown[] = []
    const end = (message: object) => void seen.push((message as { command: string }).command.toUpperCase())
    const channel = tracingChannel(`${name.split(' ')[0]}:command`)
    const listeners = { start() {}, end() {}, asyncStart() {}, error() {}, asyncEnd: end }
    channel.subscribe(listeners)
    try {
      expect(await client.get('k')).toBe('v')
      expect(await client.call(['GET', 'k'])).toBe('v')
      await client.set('other', 'w')
      // iovalkey has no channels to trace by.
      const traced = name === 'iovalkey' ? [] : ['GET', 'GET', 'SET']
      await waitFor(() => seen.length >= traced.length, { what: 'three traces' })
      expect(seen).toEqual(traced)
    } finally {
      channel.unsubscribe(listeners)
    }
  })

  test.each(['before', 'after'])('a wrapper that was put on %s sees every call', async (when) => {
    const client = await open()
    const methods = client.raw as { get(...args: unknown[]): unknown }
    let calls = 0
    const wrap = () => {
      const { get: wrapped } = methods
      methods.get = function (...args) {
        calls++
        return wrapped.apply(this, args)
      }
    }
    if (when === 'before') wrap()
    await fixture.adopt(client.raw)
    if (when === 'after') wrap()
    await fixture.makeHot(client, 'k')
    calls = 0
    for (let count = 0; count < 5; count++) expect(await client.get('k')).toBe('v')
    fixture.hub.cool('main', ['k'])
    await client.get('k')
    expect(calls).toBe(6)
  })
})

test.each([null, undefined, 5, 'redis://localhost', {}, { sendCommand() {}, callBuffer() {}, Promise }])(
  'protect refuses %j by name',
  (client) => {
    expect(() => protect(client as object)).toThrow(expect.objectContaining({ code: 'FB_CLIENT_UNSUPPORTED' }))
  },
)

test('an ioredis 4 client is named in the refusal', () => {
  const old = { sendCommand() {}, callBuffer() {}, Promise }
  expect(() => protect(old)).toThrow('an ioredis 4 client is not an ioredis (5, 6)')
})

test('a client in memory alone stays a client', () => {
  const lazy = new Redis({ lazyConnect: true })
  expect(protect(lazy, { hubs: [], tableFile: false })).toBe(lazy)
})
