import { decodeFrame, decodeInvalidation, encodeBinaryReport, encodeFrame, encodeJsonFrame } from '@firebreak/core'
import { parseRule, type Rule } from '@firebreak/core/rules'
import { HubCore, openRedisStore } from '@firebreak/hub'
import { type RedisServer, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { frameOf, recordingOf, versions } from './recording.ts'
import { SpokenChannel } from './spoken-channel.ts'

let server: RedisServer
let redis: Redis
let runs = 0
let prefix: string
let cores: HubCore[]

beforeAll(async () => {
  server = await startRedis()
  redis = new Redis(server.port)
})
afterAll(async () => {
  redis.disconnect()
  await server.stop()
})
beforeEach(() => {
  prefix = `versions-${process.pid}-${runs++}`
  cores = []
})
afterEach(async () => {
  await Promise.all(cores.map((core) => core.close()))
})

async function openHub(hubId = `hub-${cores.length}`): Promise<HubCore> {
  const core = await HubCore.open(await openRedisStore(server.url, { prefix }), { hubId, loadOf: () => 0 })
  core.start()
  cores.push(core)
  return core
}

const refusals = (core: HubCore) => Object.values(core.collector.refused).filter((count) => count > 0)
const alarmIds = (core: HubCore) => core.alarms.list().map(({ id }) => id)

function report(core: HubCore, key: string, count: number, sequence: number): Uint8Array {
  const now = core.now()
  const sections = [{ redisClusterId: 'main', entries: [{ key, count, writes: 0, bytes: 0 }] }]
  const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'i' }
  return encodeFrame('report', sequence, encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections }))
}

describe.each(versions)('what version %s said and kept', (version) => {
  const recording = recordingOf(version)

  test('its store: rules, switch, history, audit and positions are taken over', async () => {
    for (const [name, ...args] of recording.redisStore) {
      await redis.call(name!, ...args.map((arg) => arg.replace('PREFIX', prefix)))
    }
    const core = await openHub()
    expect(core.rules().rules).toEqual([
      parseRule({ id: 'r', prefix: 'k', threshold: 100, strategy: { strategy: 'LocalCache', expireTime: 5 } }),
    ])
    expect(core.delivery.isOff).toBe(true)
    expect(await core.store.audit(9)).toMatchObject([{ who: 'ann', what: 'add rule r' }])
    expect(await core.store.history({ limit: 9 })).toMatchObject([{ kind: 'hot', key: 'k1' }])
    expect(await core.store.position('binlog of shop')).toBe('0-1-5')
    expect(alarmIds(core)).toEqual([])
    await core.setOff(false, 'bob')
    await core.putRule(parseRule({ id: 's', prefix: 's', threshold: 1 }), 'bob')
    expect(core.rules().version).toBe(2)
  })

  test('its sensors are accepted, with everything that they send', async () => {
    const core = await openHub()
    const channel = new SpokenChannel(core.sensorSessions())
    for (const type of ['hello', 'status', 'claim', 'resync'] as const) channel.say(frameOf(recording, type))
    channel.say(report(core, 'k1', 5, 1))
    await core.settled()
    expect(channel.types().filter((type) => type === 'refused')).toEqual([])
    expect(channel.types()).toContain('snapshot')
    expect(refusals(core)).toEqual([])
    expect([...core.fleet.hosts.all()].map(({ agent }) => agent)).toEqual(['client/0.1.0 ioredis'])
    const old = decodeFrame(frameOf(recording, 'report'))
    expect(() => core.collector.collectBinary(old.bytes, old.payloadStart, 9)).not.toThrow()
    core.collector.collectText(recording.textReports[1], 1, undefined)
    core.collector.collectText(recording.textReports[2], 2, undefined)
  })

  test('its lane: messages relayed by another hub reach our sensors', async () => {
    const core = await openHub()
    const keys: string[] = []
    core.lane.join((bytes) => keys.push(...decodeInvalidation(decodeFrame(bytes)).items.map(({ key }) => key)))
    await redis.publish(`{${prefix}:hub}:lane`, recording.relayed)
    await waitFor(() => keys.includes('k1'))
  })
})

describe('what a later version says and keeps', () => {
  const known = { id: 'known', prefix: 'k', threshold: 100 }
  const later = (id: string, changes: object) => ({ ...parseRule({ ...known, id }), ...changes }) as unknown as Rule
  const laterRules = [
    later('level', { pattern: { kind: 'prefix', prefix: 'kx' }, priority: 9, levels: [{ measure: 'cpu', enter: 1 }] }),
    later('pattern', { pattern: { kind: 'slot', slot: 7 } }),
    later('mode', { mode: 'canary' }),
    later('strategy', { levels: [{ measure: 'reads', enter: 1, exit: 1, strategies: [{ strategy: 'Teleport' }] }] }),
  ]

  test('unknown rules are left alone and reported; reports are accepted, other rules apply', async () => {
    const other = await openHub('newer')
    for (const rule of laterRules) await other.store.saveRule(rule)
    const core = await openHub()
    await core.putRule(parseRule(known), 'ann')
    expect(alarmIds(core)).toContain('rules-newer')
    const channel = new SpokenChannel(core.sensorSessions())
    channel.hello()
    channel.say(report(core, 'k1', 500, 1))
    channel.say(report(core, 'kx', 500, 2))
    await waitFor(() => core.delivery.has('main', 'k1'))
    expect(refusals(core)).toEqual([])
    // Its rule has the higher priority: no other rule acts on its keys.
    expect(core.delivery.has('main', 'kx')).toBe(false)
    // As the later version wrote them, for versions that know them.
    const stored = (await core.store.load()).rules
    for (const rule of laterRules) expect(stored).toContainEqual(rule)
  })

  test('keys that a later hub made hot by such a rule stay hot there, and the board continues', async () => {
    const core = await openHub()
    await core.putRule(parseRule(known), 'ann')
    await core.store.saveRule(laterRules[1]!)
    await waitFor(() => alarmIds(core).includes('rules-newer'))
    const id = JSON.stringify(['main', 'pattern', '1000 on accesses', 'k9'])
    const bucket = core.store.board!.bucketOf(id)
    const hot = `{${prefix}:heat:${bucket}}:hot`
    const at = Date.now()
    const state = { level: 1, since: at, levelSince: at, until_: at + 60_000, services: ['shop'], heat: 9 }
    await redis.hset(hot, id, JSON.stringify({ ...state, strategy: JSON.stringify({ strategy: 'Teleport' }) }))
    const late = await openHub()
    const channel = new SpokenChannel(late.sensorSessions())
    channel.hello()
    channel.say(report(late, 'k1', 500, 1))
    await waitFor(() => late.delivery.has('main', 'k1'))
    await late.settled()
    expect(await redis.hexists(hot, id)).toBe(1)
    expect(alarmIds(late)).not.toContain('board')
  })

  test('unknown frames, statuses and stored entries affect nothing else', async () => {
    const first = await openHub()
    const entry = {
      redisClusterId: 'main',
      key: 'k',
      ruleId: 'known',
      reason: '',
      since: 1,
      until: Date.now() + 60_000,
    }
    await first.store.saveEntries(
      [{ entry: { ...entry, strategy: { strategy: 'Teleport' } as never }, services: [] }],
      [],
    )
    const core = await openHub()
    expect(core.delivery.size).toBe(0)
    const channel = new SpokenChannel(core.sensorSessions())
    channel.hello()
    const unknown = encodeFrame('report', 0, new Uint8Array([1]))
    unknown[1] = 15
    for (let nth = 0; nth < 20; nth++) channel.say(unknown)
    const watchers = [{ redisClusterId: 'main', kind: 'quantum', state: 'entangled', detail: '' }]
    const status = {
      sentAt: core.now(),
      epoch: '',
      version: 0,
      isOff: false,
      counters: {},
      keys: [],
      watchers,
      mood: 1,
    }
    channel.say(encodeJsonFrame('status', 0, status as never))
    expect(channel.closed).toBeUndefined()
    expect(channel.types()).not.toContain('refused')
    expect([...core.fleet.hosts.all()]).toHaveLength(1)
  })

  test('an unreadable invalidation counts as a gap for our sensors', async () => {
    const core = await openHub()
    const { head } = core.lane
    await redis.publish(`{${prefix}:hub}:lane`, `other ${Buffer.from([1, 20, 0, 255]).toString('base64')}`)
    await waitFor(() => core.lane.head === head + 1)
  })
})
