import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { type ProtectOptions, protect, shieldOf, unprotect } from '@firebreak/client'
import type { RateLimitStrategy } from '@firebreak/core'
import {
  type RedisServer,
  redisCli,
  startCluster,
  startRedis,
  startSentinel,
  TestHub,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { clusterOf } from '../../packages/client/src/protect.ts'
import { type AnyClient, libraries, type Place } from './libraries.ts'

// What one client shares with others neither keeps it alive nor ends with it.

setFlagsFromString('--expose-gc')
const collect = runInNewContext('gc') as () => void

let server: RedisServer
let hub: TestHub
const closers: (() => unknown)[] = []

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  hub = await TestHub.start()
  await server.cli('FLUSHALL')
})
afterEach(async () => {
  for (const close of closers.splice(0).reverse()) await close()
  await hub.kill()
})

const sharedLimit: RateLimitStrategy = {
  strategy: 'RateLimit',
  algorithm: 'fixedWindow',
  limit: 1,
  windowMs: 600_000,
  onLimit: 'reject',
  scope: 'shared',
}

describe.each(Object.keys(libraries))('%s', (name) => {
  const options = () => ({ hubs: [hub.url], serviceId: 'shop', redisClusterId: 'main', tableFile: false }) as const

  async function open(place: Place = { kind: 'standalone', port: server.port }): Promise<AnyClient> {
    const client = await libraries[name]!(place)
    // Written at the call, as applications do.
    protect(client.raw, { ...options(), canaryMs: 0, onWarning: () => {} })
    closers.push(() => {
      unprotect(client.raw)
      try {
        client.close()
      } catch {
        // It is closed already.
      }
    })
    return client
  }

  /** Opens, uses and closes clients as an application does that never heard of `unprotect`. */
  async function useAndClose(count: number): Promise<WeakRef<object>[]> {
    const gone: WeakRef<object>[] = []
    for (let index = 0; index < count; index++) {
      const client = await libraries[name]!({ kind: 'standalone', port: server.port })
      protect(client.raw, { ...options(), canaryMs: 0, onWarning: () => client.raw })
      await client.set('k', 'v')
      await client.get('k')
      client.close()
      gone.push(new WeakRef(client.raw))
    }
    return gone
  }

  test('closed clients are freed, hot or cold, while others share their shield', async () => {
    const stays = await open()
    hub.heat('main', ['k'])
    await waitFor(() => clusterOf(stays.raw)?.hasHotKeys, { what: 'the hot key' })
    const gone = await useAndClose(20)
    await waitFor(
      () => {
        collect()
        return gone.every((reference) => reference.deref() === undefined)
      },
      { what: 'closed clients to be freed' },
    )
    expect(await stays.get('k')).toBe('v')
  })

  test('the last client that is freed ends the shield', async () => {
    let shield: WeakRef<object> | undefined
    const useOne = async () => {
      const client = await libraries[name]!({ kind: 'standalone', port: server.port })
      protect(client.raw, { ...options(), serviceId: 'alone' })
      shield = new WeakRef(shieldOf(client.raw)!)
      await waitFor(() => shieldOf(client.raw)!.isConnected, { what: 'the hub link' })
      client.close()
    }
    await useOne()
    await waitFor(
      () => {
        collect()
        return shield!.deref() === undefined
      },
      { what: 'the shield to be freed' },
    )
  })

  test('a listener written at the call shares the shield, and each is told', async () => {
    const [first, second] = [await open(), await open()]
    expect(shieldOf(first.raw)).toBe(shieldOf(second.raw))
    const told: string[] = []
    const third = await libraries[name]!({ kind: 'standalone', port: server.port })
    protect(third.raw, { ...options(), canaryMs: 0, onWarning: ({ kind }) => told.push(kind) })
    closers.push(
      () => unprotect(third.raw),
      () => third.close(),
    )
    shieldOf(first.raw)!.trouble.note('test', 'something')
    expect(told).toEqual(['test'])
  })

  test('options written at the call share the shield; a function there is told, and has one of its own', async () => {
    const told: string[] = []
    const protectedBy = async (more: ProtectOptions) => {
      const client = await libraries[name]!({ kind: 'standalone', port: server.port })
      protect(client.raw, { ...options(), onWarning: ({ kind }) => told.push(kind), ...more })
      closers.push(
        () => unprotect(client.raw),
        () => client.close(),
      )
      return shieldOf(client.raw)
    }
    const path = temporaryFolder('inline')
    const written: (() => ProtectOptions)[] = [
      () => ({ redactKeys: ['hash'], redactSecret: 'the salt of sixteen' }),
      () => ({ retry: { tracking: { tries: 20, deadlineMs: 60_000 } } }),
      () => ({ hubs: [hub.url, hub.url] }),
      () => ({ diskTier: { path, maxBytes: 2 ** 24 } }),
    ]
    for (const write of written) expect(await protectedBy(write())).toBe(await protectedBy(write()))
    expect(await protectedBy({ redactKeys: ['hash'], redactSecret: 'another one of sixteen' })).not.toBe(
      await protectedBy(written[0]!()),
    )
    const redactKey = (key: string) => key.length.toString()
    expect(await protectedBy({ redactKey })).toBe(await protectedBy({ redactKey }))
    expect(told).toEqual([])
    // Nothing shows whether it gives the same names.
    expect(await protectedBy({ redactKey: (key) => key.length.toString() })).not.toBe(await protectedBy({ redactKey }))
    await waitFor(() => told.length > 0)
    expect(new Set(told)).toEqual(new Set(['options-unshared']))
  })

  test.each(['standalone', 'cluster', 'sentinel'])('the second goes on when the first closes: %s', async (kind) => {
    let place: Place = { kind: 'standalone', port: server.port }
    let ports = [server.port]
    if (kind === 'cluster') {
      const { addresses, nodes, stop } = await startCluster()
      ports = nodes.map(({ port }) => port)
      closers.push(stop)
      place = { kind, addresses }
    } else if (kind === 'sentinel') {
      const group = await startSentinel({ sentinels: 1, replicas: 1 })
      closers.push(group.stop)
      ports = group.servers.map(({ port }) => port)
      place = { kind, name: group.name, sentinels: group.sentinels }
    }
    const [first, second] = [await open(place), await open(place)]
    await first.set('k', 'v')
    hub.heat('main', ['k'])
    const cluster = clusterOf(second.raw)!
    const served = () =>
      waitFor(
        async () => {
          await second.get('k')
          return [...cluster.takeEffects()].some((effect) => effect.localHits > 0)
        },
        { what: 'a read from memory' },
      )
    await served()
    first.close()
    // The connections that read for both are lost too, and have to be opened with what is left.
    for (const port of ports) await redisCli(port, 'CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    await served()
    await second.set('k', 'w')
    expect(await second.get('k')).toBe('w')
    await served()
  })

  test('a shared limit is counted in Redis when the first client has closed', async () => {
    const [first, second] = [await open(), await open()]
    first.close()
    hub.heat('main', ['limited'], { strategy: sharedLimit })
    await waitFor(() => clusterOf(second.raw)?.isHot('limited'), { what: 'the limit' })
    // A client that stood when it was protected is asked for its database first.
    await waitFor(() =>
      second.get('limited').then(
        () => false,
        (error: Error) => error.message.includes('limited'),
      ),
    )
    expect(await server.cli('KEYS', 'fb:limit*')).toContain('limited')
  })

  test('unprotect takes away what is ours and nothing else', async () => {
    const client = await libraries[name]!({ kind: 'standalone', port: server.port })
    closers.push(() => client.close())
    const emitter = client.raw as unknown as NodeJS.EventEmitter & Record<string, unknown>
    const heard = () => emitter.eventNames().map((event) => [event, emitter.listeners(event)])
    const methods = ['get', 'getBuffer', 'GET', 'sendCommand', 'on', 'off', 'emit']
    const calls: string[] = []
    const bareGet = emitter['get'] as (...args: unknown[]) => unknown
    // The application's own wrapper, put on before.
    emitter['get'] = function (this: unknown, ...args: unknown[]) {
      calls.push(String(args[0]))
      return bareGet.apply(this, args)
    }
    emitter.on('error', () => {})
    const before = { heard: heard(), methods: methods.map((method) => emitter[method]) }
    protect(client.raw, { ...options(), onWarning: () => {} })
    await client.set('k', 'v')
    hub.heat('main', ['k'])
    await waitFor(() => clusterOf(client.raw)?.hasHotKeys, { what: 'the hot key' })
    await client.get('k')
    unprotect(client.raw)
    expect(heard()).toEqual(before.heard)
    expect(methods.map((method) => emitter[method])).toEqual(before.methods)
    expect(await client.get('k')).toBe('v')
    expect(calls).toEqual(['k', 'k'])
  })
})
