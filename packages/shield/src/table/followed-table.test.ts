import { defaultLocalCache, systemRuntime, type TableDelta, type TableEntry } from '@firebreak/core'
import { expect, test } from 'vitest'
import type { ClusterShield } from '../cluster-shield.ts'
import { HubClock } from '../hub/hub-clock.ts'
import type { ResolvedShieldOptions } from '../shield-options.ts'
import { Trouble } from '../trouble/trouble.ts'
import { FollowedTable } from './followed-table.ts'

/** A table whose turns of the event loop end when the test ends them. */
function setUp() {
  const immediates: (() => void)[] = []
  const timers = {
    ...systemRuntime.timers,
    setImmediate: (callback: () => void) => {
      immediates.push(callback)
      return { cancel() {} }
    },
  }
  const runtime = { ...systemRuntime, timers }
  const taken: string[] = []
  const asked: string[] = []
  const cluster = {
    *tableSteps(entries: Iterable<TableEntry>) {
      taken.push(...[...entries].map(({ key }) => key))
    },
    changeTable: (set: readonly TableEntry[]) => taken.push(...set.map(({ key }) => key)),
  } as unknown as ClusterShield
  const table = new FollowedTable({
    options: { instanceId: 'i', tableFile: undefined, runtime } as unknown as ResolvedShieldOptions,
    trouble: new Trouble(() => {}),
    hubClock: new HubClock(runtime.clock),
    clusters: new Map([['main', cluster]]),
    onChanged() {},
    onRules() {},
    askForSnapshot: (reason) => asked.push(reason) > 0,
  })
  const endTurn = () => {
    for (const callback of immediates.splice(0)) callback()
  }
  table.takeSnapshot(() => ({ epoch: 'e', version: 1, entries: [], rules: [], isOff: false }))
  endTurn()
  return { table, taken, asked, endTurn }
}

function delta(from: number, key: string): () => TableDelta {
  const entry = {
    redisClusterId: 'main',
    key,
    strategy: defaultLocalCache,
    ruleId: 'r',
    reason: '',
    since: 0,
    until: 9e15,
  }
  return () => ({ epoch: 'e', from, to: from + 1, set: [entry], removed: [] })
}

test('changes that arrive together are applied one per turn, in order, and a heartbeat after them finds no gap', () => {
  const { table, taken, asked, endTurn } = setUp()
  for (const [at, key] of ['a', 'b', 'c'].entries()) table.takeDelta(delta(at + 1, key))
  table.heard('e', 4)
  expect(taken).toEqual(['a'])
  endTurn()
  expect(taken).toEqual(['a', 'b'])
  for (let turn = 0; turn < 3; turn++) endTurn()
  expect(taken).toEqual(['a', 'b', 'c'])
  expect(table.version).toBe(4)
  expect(asked).toEqual([])
})

function manyEntries(count: number): TableEntry[] {
  const [entry] = delta(0, 'k')().set
  return Array.from({ length: count }, (_, index) => ({ ...entry!, key: `many ${index}` }))
}

test('a table that arrives in parts is applied once it is complete, and never in part', () => {
  const { table, taken, endTurn } = setUp()
  const part = (version: number, key: string, hasMore: boolean) => () => ({
    epoch: 'e',
    version,
    entries: delta(0, key)().set,
    rules: [],
    isOff: false,
    ...(hasMore && { hasMore }),
  })
  const endAll = () => {
    for (let turn = 0; turn < 10; turn++) endTurn()
  }
  table.takeSnapshot(part(5, 'a', true))
  table.takeSnapshot(part(5, 'b', true))
  endAll()
  expect([table.version, taken]).toEqual([1, []])
  table.takeSnapshot(part(5, 'c', false))
  endAll()
  expect([table.version, taken]).toEqual([5, ['a', 'b', 'c']])
  // One that was started, and then another with a newer version.
  table.takeSnapshot(part(6, 'lost', true))
  table.takeSnapshot(part(7, 'd', false))
  endAll()
  expect([table.version, taken.splice(3)]).toEqual([7, ['d']])
  // The hub is lost in the middle: the next one starts over.
  table.takeSnapshot(part(8, 'lost', true))
  endAll()
  table.disconnected()
  table.takeSnapshot(part(8, 'e', false))
  endAll()
  expect([table.version, taken.splice(3)]).toEqual([8, ['e']])
})

test('a large change takes several turns, later ones wait, and a lost hub does not leave half of it', () => {
  const { table, taken, asked, endTurn } = setUp()
  table.takeDelta(() => ({ epoch: 'e', from: 1, to: 2, set: manyEntries(10_000), removed: [] }))
  table.takeDelta(delta(2, 'behind'))
  const counts: number[] = []
  for (let turn = 0; turn < 15; turn++) endTurn()
  table.disconnected()
  while (taken.length < 10_000) {
    const before = taken.length
    endTurn()
    counts.push(taken.length - before)
    expect(counts.length).toBeLessThan(100)
  }
  expect(Math.max(...counts)).toBeLessThanOrEqual(512)
  for (let turn = 0; turn < 3; turn++) endTurn()
  expect(taken).not.toContain('behind')
  table.takeDelta(delta(2, 'after'))
  expect(taken.at(-1)).toBe('after')
  expect(asked).toEqual([])
})

test('a lost hub discards waiting changes, and a gap asks for the whole table', () => {
  const { table, taken, asked, endTurn } = setUp()
  table.takeDelta(delta(1, 'a'))
  table.takeDelta(delta(2, 'b'))
  table.disconnected()
  endTurn()
  expect(taken).toEqual(['a'])
  table.takeDelta(delta(3, 'c'))
  expect(asked).toHaveLength(1)
})

test('if more changes wait than allowed, they are dropped and the whole table is requested', () => {
  const { table, taken, asked } = setUp()
  for (let at = 1; at < 2000; at++) table.takeDelta(delta(at, `k${at}`))
  expect(asked).toEqual(['changes arrived faster than they could be applied'])
  expect(taken).toEqual(['k1'])
})
