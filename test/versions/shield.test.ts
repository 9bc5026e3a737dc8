import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { peek, shieldOf } from '@firebreak/client'
import { defaultLocalCache, encodeFrame, encodeInvalidation, type Strategy } from '@firebreak/core'
import { parseRule, type Rule } from '@firebreak/core/rules'
import { type RedisServer, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from '../client/fixture.ts'
import { frameOf, recordingOf, versions } from './recording.ts'

let server: RedisServer
let fixture: Fixture
let warnings: { kind: string; message: string }[]

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  warnings = []
})
afterEach(() => fixture.close())

const onWarning = (warning: { kind: string; message: string }) => void warnings.push(warning)

describe.each(versions)('an application before a hub of version %s', (version) => {
  const recording = recordingOf(version)

  test('accepts its snapshot, delta, heartbeat and invalidations', async () => {
    const redis = await fixture.client({ onWarning })
    await fixture.plain.mset('k1', 'v1', 'k4', 'v4')
    const shield = shieldOf(redis)!
    fixture.hub.epoch = 'e1'
    fixture.hub.version = 4
    for (const type of ['welcome', 'snapshot', 'delta'] as const) fixture.hub.broadcast(frameOf(recording, type))
    await waitFor(() => shield.tableVersion.version === 4)
    await fixture.isServed(() => redis.get('k1'))
    await fixture.isServed(() => redis.get('k4'))
    fixture.hub.broadcast(frameOf(recording, 'heartbeat'))
    fixture.hub.broadcast(frameOf(recording, 'invalidate'))
    fixture.hub.broadcast(frameOf(recording, 'refused'))
    await waitFor(() => warnings.some(({ kind }) => kind === 'hub-refused'))
    // It has more than one copy, on one node.
    expect(warnings.map(({ kind }) => kind)).toEqual(['copies-one-node', 'hub-refused'])
  })

  test('starts from its table file', async () => {
    const tableFile = join(temporaryFolder('versions'), 'table.json')
    writeFileSync(tableFile, JSON.stringify(recording.tableFile))
    fixture.hub.epoch = 'e1'
    fixture.hub.version = 3
    const redis = await fixture.client({ onWarning, tableFile })
    expect(shieldOf(redis)!.tableVersion).toEqual({ epoch: 'e1', version: 3 })
    expect(warnings).toEqual([])
  })
})

describe('an application before a hub of a later version', () => {
  const later = (name: string) => ({ strategy: name, tier: 'disk' }) as unknown as Strategy

  test('leaves entries with unknown strategies alone, reports them once, and handles the others', async () => {
    const redis = await fixture.client({ onWarning })
    await fixture.plain.mset('k', 'v', 'new1', 'a', 'new2', 'b')
    fixture.hub.heat('main', ['new1', 'new2', 'k'], { strategy: later('Teleport') })
    fixture.hub.heat('main', ['k'], { strategy: { ...defaultLocalCache, pinned: true } as Strategy })
    await fixture.isServed(() => redis.get('k'))
    // Two turns of the timer that works out what is hot.
    const { version } = shieldOf(redis)!.tableVersion
    expect(version).toBe(fixture.hub.version)
    await waitFor(() => fixture.hub.statuses.length > 3)
    expect(await redis.mget('new1', 'new2')).toEqual(['a', 'b'])
    expect(await redis.get('new1')).toBe('a')
    expect(peek(redis, 'new1')).toBeUndefined()
    expect(warnings.map(({ kind }) => kind)).toEqual(['table-newer'])
    expect(warnings[0]!.message).toMatch(/strategy Teleport of rule test/)
  })

  test('stops handling a key whose entry changes to an unknown strategy', async () => {
    const redis = await fixture.client({ onWarning })
    await fixture.plain.set('k', 'v')
    await fixture.makeHot(redis, 'k')
    fixture.hub.heat('main', ['k'], { strategy: later('Teleport') })
    await waitFor(() => peek(redis, 'k') === undefined)
    expect(await redis.get('k')).toBe('v')
  })

  test('follows the rules that it knows; keys of others are not claimed under a rule of lower priority', async () => {
    const redis = await fixture.client({ onWarning })
    await fixture.plain.mset('odd', 'o', 'known', 'k')
    const known = parseRule({ id: 'known', glob: '*', threshold: 50 })
    const odd = { ...parseRule({ id: 'odd', key: 'odd', threshold: 50, priority: 9 }), levels: [{ measure: 'cpu' }] }
    const kindless = { ...known, id: 'kindless', pattern: { kind: 'slot', slot: 7 } }
    fixture.hub.setRules([known, odd, kindless, null] as unknown as Rule[])
    await waitFor(() => warnings.length > 0)
    for (let nth = 0; nth < 500; nth++) await Promise.all([redis.get('odd'), redis.get('known')])
    await waitFor(() => fixture.hub.claims.length > 0)
    expect(new Set(fixture.hub.claims.map(({ key }) => key))).toEqual(new Set(['known']))
    expect(warnings.map(({ kind }) => kind)).toEqual(['table-newer'])
    expect(warnings[0]!.message).toMatch(/odd, kindless, \?/)
  })

  test('ignores unknown frames, and drops its cache after an unreadable invalidation', async () => {
    const redis = await fixture.client({ onWarning })
    await fixture.plain.set('k', 'v')
    await fixture.makeHot(redis, 'k')
    const frame = encodeFrame('delta', 0, new Uint8Array([1, 2, 3]))
    frame[1] = 99
    fixture.hub.broadcast(frame)
    await waitFor(() => warnings.some(({ kind }) => kind === 'hub-frame'))
    expect(peek(redis, 'k')).toBe('v')
    const items = [{ key: 'x' }]
    fixture.hub.laneHead++
    const bytes = encodeInvalidation({
      sequence: fixture.hub.laneHead,
      redisClusterId: 'main',
      database: 0,
      kind: 'keys',
      items,
    })
    // The last byte holds the flags of the only item.
    bytes[bytes.length - 1] = 8
    fixture.hub.broadcast(bytes)
    await waitFor(() => peek(redis, 'k') === undefined)
    await fixture.isServed(() => redis.get('k'))
  })
})

test('an internal error in a timer is counted and reported, and never reaches the application', async () => {
  const redis = await fixture.client({ onWarning })
  await fixture.plain.set('k', 'v')
  await fixture.makeHot(redis, 'k')
  const shield = shieldOf(redis)!
  const cluster = shield.cluster('main', undefined as never)
  cluster.tick = () => {
    throw new TypeError('planted')
  }
  await waitFor(() => warnings.some(({ kind }) => kind === 'internal'))
  const { troubles } = shield.losses
  await waitFor(() => shield.losses.troubles > troubles)
  expect(await redis.get('k')).toBe('v')
  expect(warnings.filter(({ kind }) => kind === 'internal')).toHaveLength(1)
})
