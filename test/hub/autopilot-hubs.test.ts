import { encodeBinaryReport, parseKeyText } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { HubCore, openRedisStore } from '@firebreak/hub'
import { FakeClock, fakeRuntime, type RedisServer, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

let redis: RedisServer
beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const capacity = 50_000

interface Member {
  readonly core: HubCore
  readonly clock: FakeClock
  readonly table: Set<string>
}

/** Three hubs on a real Redis, on clocks that the test moves; the third has no sensor of the cluster. */
async function threeHubs(): Promise<{ members: Member[]; second: (counts: Record<string, number>) => Promise<void> }> {
  const shared = new FakeClock()
  const members: Member[] = []
  for (let nth = 0; nth < 3; nth++) {
    const clock = new FakeClock(shared.now())
    const store = await openRedisStore(redis.url, { prefix: 'autopilot', testClock: shared })
    const options = { hubId: `hub-${nth}`, runtime: fakeRuntime(nth + 1, clock), loadOf: () => 0 }
    const core = await HubCore.open(store, options)
    core.start()
    const table = new Set<string>()
    core.delivery.join('shop', {
      onDelta({ set, removed }) {
        for (const { key } of set) table.add(parseKeyText(key)!)
        for (const { key } of removed) table.delete(parseKeyText(key)!)
      },
    })
    members.push({ core, clock, table })
  }
  let sequence = 0
  async function second(counts: Record<string, number>): Promise<void> {
    let served = 0
    for (let tick = 0; tick < 10; tick++) {
      shared.step(100)
      for (const [nth, { core, clock, table }] of members.entries()) {
        clock.advance(100)
        // Each of the two sensors has half of the accesses.
        const entries = Object.entries(counts).map(([key, count]) => ({
          key,
          count: Math.round(count / 20),
          writes: 0,
          bytes: 0,
        }))
        if (nth < 2) {
          for (const { key, count } of entries) if (!table.has(key)) served += count
          const times = { collectTs: clock.now(), sendTs: clock.now() }
          const from = { serviceId: 'shop', hostId: `h${nth}`, instanceId: `i${nth}` }
          const report = encodeBinaryReport({ ...times, ...from, sections: [{ redisClusterId: 'main', entries }] })
          core.collector.collectBinary(report, 0, ++sequence)
        }
        await core.settled()
      }
    }
    const cpuMs = (served / capacity) * 1000
    const sample = { redisClusterId: 'main', node: 'redis:1', spanMs: 1000, commands: served, cpuMs, roundTripMs: 0.2 }
    for (const { core, clock } of members.slice(0, 2)) core.keys.autopilot.takeLoad([sample], 'h', clock.now())
  }
  return { members, second }
}

test('several hubs that each see a part decide alike by the load of the node', async () => {
  const { members, second } = await threeHubs()
  await members[0]!.core.putRule(parseRule({ id: 'auto', glob: '*', threshold: 'auto', minHoldMs: 2000 }), 'test')
  const crowd = (count: number) =>
    Object.fromEntries(Array.from({ length: 100 }, (_, index) => [`small:${index}`, count / 100]))
  const tables = () => members.map(({ table }) => [...table].filter((key) => !key.startsWith('small')))
  // 40 %, and most of it one key: none of the hubs does anything.
  for (let index = 0; index < 5; index++) await second({ ...crowd(8000), big: 12_000 })
  expect(tables()).toEqual([[], [], []])
  // 80 %: each hub saw 40 % of the node's accesses, and knows of the others'.
  for (let index = 0; index < 4; index++) await second({ ...crowd(24_000), big: 16_000 })
  expect(tables()).toEqual([['big'], ['big'], ['big']])
  for (let index = 0; index < 8; index++) await second({ ...crowd(24_000), big: 16_000 })
  expect(tables()).toEqual([['big'], ['big'], ['big']])
  for (let index = 0; index < 8; index++) await second({ ...crowd(6000), big: 4000 })
  expect(tables()).toEqual([[], [], []])
  for (const { core } of members) await core.close()
}, 120_000)
