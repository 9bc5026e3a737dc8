import type { TableEntry } from '@firebreak/core'
import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import { CappedTable } from './capped-table.ts'

function setUp(maxKeys: number) {
  const alarms = new AlarmBoard(new FakeClock())
  const handled = new Map<HeatTrack, TableEntry>()
  const sink = {
    set: (track: HeatTrack, entry: TableEntry) => void handled.set(track, entry),
    remove: (track: HeatTrack) => void handled.delete(track),
  }
  const table = new CappedTable(sink, alarms, maxKeys)
  const heats = new Map<string, number>()
  const tracks = new Map<string, HeatTrack>()
  const heat = (key: string, count: number) => {
    heats.set(key, count)
    const track = tracks.get(key) ?? ({ key, windowMs: 1000, heat: () => heats.get(key) ?? 0 } as unknown as HeatTrack)
    tracks.set(key, track)
    table.set(track, { key, ruleId: key.startsWith('p') ? 'wide' : 'narrow' } as TableEntry)
  }
  const cool = (key: string) => table.remove(tracks.get(key)!)
  const keys = () => [...handled.keys()].map(({ key }) => key).sort()
  return { table, alarms, heat, cool, keys }
}

test('of more keys than the table takes the hottest are handled, and an alarm names the rule that has most', () => {
  const { table, alarms, heat, keys } = setUp(3)
  for (let index = 0; index < 8; index++) heat(`p${index}`, 100 + index * 100)
  heat('other', 50)
  expect(keys()).toEqual(['p0', 'p1', 'p2'])
  table.review(0)
  expect(keys()).toEqual(['p5', 'p6', 'p7'])
  const [alarm] = alarms.list()
  expect(alarm).toMatchObject({ id: 'hot-keys', severity: 'warning' })
  expect(alarm!.cause).toContain('9 keys are hot, more than the 3')
  expect(alarm!.cause).toContain('rule `wide` alone has 8')
})

test('a key with a long name takes the place of several, and makes way for them', () => {
  const { table, alarms, heat, keys } = setUp(10)
  const long = (name: string) => name + 'x'.repeat(1000)
  for (const [index, name] of ['a', 'b', 'c'].entries()) heat(long(name), 100 + index)
  for (const name of ['short-1', 'short-2', 'short-3']) heat(name, 50)
  expect(keys()).toEqual([long('a'), long('b'), 'short-1', 'short-2'])
  table.review(0)
  expect(alarms.list()[0]!.cause).toContain('6 keys are hot, more than there is room for with names as long')
  heat(long('c'), 1000)
  table.review(0)
  expect(keys()).toEqual([long('b'), long('c'), 'short-3'].sort())
  heat(long('alone') + 'x'.repeat(10_000), 5000)
  expect(keys()).toHaveLength(3)
})

test('a key of about the same heat takes nobody’s place; a free place goes to the hottest; then the alarm ends', () => {
  const { table, alarms, heat, cool, keys } = setUp(2)
  for (const [key, count] of [
    ['a', 100],
    ['b', 100],
    ['c', 110],
    ['d', 90],
  ] as const)
    heat(key, count)
  table.review(0)
  expect(keys()).toEqual(['a', 'b'])
  cool('a')
  table.review(0)
  expect(keys()).toEqual(['b', 'c'])
  // What waits may cool too, and what is handled may be extended.
  cool('d')
  heat('c', 120)
  table.review(0)
  expect(keys()).toEqual(['b', 'c'])
  expect(alarms.list()).toEqual([])
})
