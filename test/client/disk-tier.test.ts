import { join } from 'node:path'
import { peek, shieldOf } from '@firebreak/client'
import { defaultLocalCache, type LocalCacheStrategy } from '@firebreak/core'
import {
  FaultProxy,
  type GuardedChild,
  type RedisServer,
  scale,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import fc from 'fast-check'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'

let server: RedisServer
let fixture: Fixture
let path: string

/** Memory has room for two keys only. */
const strategy: LocalCacheStrategy = { ...defaultLocalCache, cacheSize: 2 }
const keys = Array.from({ length: 12 }, (_, index) => `page:${index}`)
const pageOf = (key: string, version: number) => `${key} ${version} `.repeat(200)

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  path = join(temporaryFolder('disk'), 'tier')
})
afterEach(() => fixture.close())

const tierOf = (redis: object) => shieldOf(redis)!.diskTier!

/** A client of which all keys are hot and most of their replies on disk. */
async function warmClient(watcherPort = server.port): Promise<Redis> {
  const client = new Redis(server.port)
  // The shield's connection may go another way than the application's own.
  Object.assign(client.options, { port: watcherPort })
  const redis = await fixture.adopt(client, { diskTier: { path } })
  await Promise.all(keys.map((key) => fixture.plain.set(key, pageOf(key, 0))))
  fixture.hub.heat('main', [...keys, 'sync'], { strategy })
  await warm(redis, 0)
  return redis
}

async function warm(redis: Redis, version: number): Promise<void> {
  await waitFor(async () => {
    const values = []
    for (const key of keys) values.push(await redis.get(key))
    const areRight = values.every((value, index) => value === pageOf(keys[index]!, version))
    return areRight && tierOf(redis).size >= keys.length - 2
  })
}

test('what memory has no room for is answered from disk, and Redis is not asked', async () => {
  const redis = await warmClient()
  const before = await fixture.calls('get')
  for (let round = 0; round < 5; round++) {
    for (const key of keys) expect(await redis.get(key)).toBe(pageOf(key, 0))
  }
  expect(await fixture.calls('get')).toBe(before)
  // Only a promise can bring what is on disk.
  expect(keys.filter((key) => peek(redis, key) === undefined).length).toBeGreaterThanOrEqual(keys.length - 2)
  await waitFor(() => fixture.hub.statuses.flatMap((status) => status.keys).some(({ localHits }) => localHits > 0))
})

test('a change drops a key’s reply in memory and on disk, and no other', async () => {
  const redis = await warmClient()
  for (const key of keys) {
    await fixture.plain.set(key, pageOf(key, 1))
    await waitFor(async () => (await redis.get(key)) === pageOf(key, 1))
  }
  await warm(redis, 1)
  const before = await fixture.calls('get')
  await redis.set(keys[0]!, 'own')
  expect(await redis.get(keys[0]!)).toBe('own')
  for (const key of keys.slice(1)) expect(await redis.get(key)).toBe(pageOf(key, 1))
  expect((await fixture.calls('get')) - before).toBe(1)
})

test('a flush and a lost watcher leave nothing on disk that is served unasked', async () => {
  const proxy = await FaultProxy.start(server.port)
  const redis = await warmClient(proxy.port)
  await fixture.plain.flushall()
  for (const key of keys) await waitFor(async () => (await redis.get(key)) === null)
  await Promise.all(keys.map((key) => fixture.plain.set(key, pageOf(key, 1))))
  await warm(redis, 1)
  // The watcher hears nothing of these.
  proxy.cut()
  await Promise.all(keys.slice(0, 6).map((key) => fixture.plain.set(key, pageOf(key, 2))))
  await waitFor(() => tierOf(redis).size === 0)
  for (const key of keys) {
    const expected = pageOf(key, keys.indexOf(key) < 6 ? 2 : 1)
    await waitFor(async () => (await redis.get(key).catch(() => '')) === expected)
  }
  await proxy.close()
})

test('a reply that memory cannot hold at all is served from disk', async () => {
  const redis = await fixture.client({ diskTier: { path } })
  const value = 'x'.repeat(50_000)
  await fixture.plain.set('large', value)
  fixture.hub.heat('main', ['large'], { strategy: { ...defaultLocalCache, maxBytes: 20_000 } })
  await fixture.isServed(() => redis.get('large'))
  const before = await fixture.calls('get')
  for (let round = 0; round < 20; round++) expect(await redis.get('large')).toBe(value)
  expect(await fixture.calls('get')).toBe(before)
})

test('random reads and writes of every kind give what a Map gives', async () => {
  const redis = await warmClient()
  const model = new Map(keys.map((key) => [key, pageOf(key, 0)]))
  let version = 0
  const step = fc.record({
    kind: fc.constantFrom('read', 'read', 'read', 'own write', 'foreign write', 'delete', 'length'),
    key: fc.constantFrom(...keys),
  })
  let reads = 0
  const before = await fixture.calls('get')
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 60, size: 'max' }), async (steps) => {
      for (const { kind, key } of steps) {
        const value = pageOf(key, ++version)
        if (kind === 'read') {
          reads++
          expect(await redis.get(key)).toBe(model.get(key) ?? null)
        } else if (kind === 'length') {
          expect(await redis.strlen(key)).toBe(model.get(key)?.length ?? 0)
        } else if (kind === 'own write') {
          await redis.set(key, value)
          model.set(key, value)
        } else {
          if (kind === 'delete') await fixture.plain.del(key)
          else await fixture.plain.set(key, value)
          if (kind === 'delete') model.delete(key)
          else model.set(key, value)
          // The news of it comes before that of a later change.
          await fixture.plain.set('sync', String(version))
          await waitFor(async () => (await redis.get('sync')) === String(version), { everyMs: 1 })
        }
      }
    }),
    { numRuns: scale(15, 300) },
  )
  expect((await fixture.calls('get')) - before).toBeLessThan(reads * 2)
})

/** Starts a process whose tier survives it. */
async function startProcess(): Promise<GuardedChild> {
  const plan = JSON.stringify({ port: server.port, hub: fixture.hub.url, path, keys })
  const child = startSource(new URL('./disk-process.ts', import.meta.url), [plan], { stdio: ['pipe', 'pipe', 'pipe'] })
  await child.printed(/ready/)
  return child
}

const bytesSent = async () => Number((await fixture.plain.info('stats')).match(/total_net_output_bytes:(\d+)/)![1])

test('after a kill -9 a value from before is served only once Redis has confirmed it', async () => {
  const large = (key: string, version: number) => `${key} ${version} `.repeat(20_000)
  await Promise.all(keys.map((key) => fixture.plain.set(key, large(key, 0))))
  fixture.hub.heat('main', keys, { strategy })
  const first = await startProcess()
  expect(first.output()).toContain('tier open empty')
  first.process.stdin!.write('warm\n')
  await first.printed(/warm/)
  const changed = keys.slice(0, 4)
  first.signal('SIGKILL')
  await first.exited
  await Promise.all(changed.map((key) => fixture.plain.set(key, large(key, 1))))
  const second = await startProcess()
  expect(second.output()).toContain('tier open full')
  const before = await bytesSent()
  for (const key of keys) {
    second.process.stdin!.write(`${key}\n`)
    const expected = large(key, changed.includes(key) ? 1 : 0)
    const [, answer] = await second.printed(new RegExp(`^${key}=(.*)$`, 'm'))
    expect(answer).toBe(`${expected.slice(0, 20)} ${expected.length}`)
  }
  // Those that did not change were not sent again.
  const sent = (await bytesSent()) - before
  expect(sent).toBeGreaterThan(large('page:0', 1).length * changed.length)
  expect(sent).toBeLessThan(large('page:0', 1).length * (changed.length + 2))
  await second.stop()
})

test('with the disk full reads go on and are right, it is told once, and the tier comes back with room', async () => {
  const valueBytes = 20_000
  const pages = Array.from({ length: 150 }, (_, index) => `page:${index}`)
  const change = (version: number) =>
    Promise.all(
      pages.map((key) => {
        const word = `${key} ${version} `
        return fixture.plain.set(key, word.repeat(Math.ceil(valueBytes / word.length)).slice(0, valueBytes))
      }),
    )
  await change(0)
  fixture.hub.heat('main', pages, { strategy })
  const plan = { port: server.port, hub: fixture.hub.url, path, keys: pages, valueBytes, fileBytes: 2 ** 20 }
  const child = startSource(new URL('./full-disk-process.ts', import.meta.url), [JSON.stringify(plan)], {
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  await child.printed(/ready/)
  let count = 0
  const ask = async (line: string) => {
    child.process.stdin!.write(`${line}\n`)
    count++
    const answers = await waitFor(() => {
      const found = [...child.output().matchAll(/^(?:read|room|stats) (\{.*\})$/gm)]
      return found.length === count ? found : undefined
    })
    return JSON.parse(answers.at(-1)![1]!)
  }
  await waitFor(async () => (await ask('read 0')).states.includes('failed'))
  for (let version = 1; version < 4; version++) {
    await change(version)
    expect((await ask(`read ${version}`)).wrong).toBe(0)
  }
  expect((await ask('stats')).warnings).toEqual(['disk-tier'])
  await ask('room')
  const told = await waitFor(async () => {
    const answer = await ask('read 3')
    expect(answer.wrong).toBe(0)
    return answer.size >= pages.length - 2 ? answer : undefined
  })
  expect(told.warnings).toEqual(['disk-tier'])
  const before = await fixture.calls('get')
  expect((await ask('read 3')).state).toBe('open')
  expect((await fixture.calls('get')) - before).toBeLessThan(pages.length / 10)
  await child.stop()
})

test('a damaged folder or one in use fails no call', async () => {
  const first = await fixture.client({ diskTier: { path }, instanceId: 'a' })
  const warnings: string[] = []
  const onWarning = ({ message }: { message: string }) => void warnings.push(message)
  const second = await fixture.client({ diskTier: { path, maxBytes: 2 ** 21 }, instanceId: 'b', onWarning })
  expect(tierOf(first).state).toBe('open')
  expect(tierOf(second).state).toBe('failed')
  expect(warnings).toEqual([expect.stringContaining('hot keys are kept only in memory')])
  await fixture.plain.set('k', 'v')
  await fixture.makeHot(second, 'k')
  expect(peek(second, 'k')).toBe('v')
})
