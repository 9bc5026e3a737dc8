import type { KeyView, Overview } from '@firebreak/core'
import { expect, test } from 'vitest'
import { renderTop } from './render-top.ts'
import { initialTop, pressKey, type TopEffect, type TopState, topRows } from './top-state.ts'

const key = (name: string, last: readonly number[], fields: Partial<KeyView> = {}): KeyView => ({
  redisClusterId: 'main',
  key: name,
  state: 'hot',
  ratePerSecond: 1,
  writesPerSecond: 0,
  bytesPerSecond: 0,
  share: 0,
  sparkline: last,
  errorPerSecond: 0,
  hosts: 1,
  slot: 1,
  ruleId: 'product',
  strategy: null,
  reason: '',
  since: null,
  effect: null,
  ...fields,
})

/** The header is of second 98, the newest full second of a key is 99. */
const overview = (keys: readonly KeyView[]): Overview => ({
  hubTime: 100_500,
  hubId: 'h',
  isOff: false,
  isSafe: true,
  verdict: 'Safe',
  table: { epoch: 'e', version: 1 },
  sensors: { connected: 1, hosts: 1, services: 1 },
  rate: { at: 98_000, redis: 500, local: 400, copies: 0, limited: 0, writes: 100 },
  traffic: [],
  keys,
  alarms: [],
  ingest: { reportsPerSecond: 0, entriesPerSecond: 0, refused: {}, trackedKeys: 1, memoryBytes: 0 },
})

const three = overview([
  key('a', [0, 100, 900], { writesPerSecond: 5 }),
  key('b', [0, 600, 0], { bytesPerSecond: 70, writesPerSecond: 9 }),
  key('c:x', [0, 300, 10], { redisClusterId: 'other', ruleId: null }),
])

function press(keys: readonly string[], from: TopState = initialTop, shown = three): readonly [TopState, TopEffect] {
  let [state, effect]: readonly [TopState, TopEffect] = [from, { kind: 'none' }]
  for (const one of keys) [state, effect] = pressKey(state, one, topRows(shown, state))
  return [state, effect]
}

const names = (state: TopState) => topRows(three, state).map((row) => row.key.key)

test('rows have the rates of the second that the header is of', () => {
  expect(topRows(three, initialTop).map((row) => [row.key.key, row.ratePerSecond, row.share])).toEqual([
    ['b', 600, 0.6],
    ['c:x', 300, 0.3],
    ['a', 100, 0.1],
  ])
  // A hub without that second gives what it has.
  expect(topRows(overview([key('a', [])]), initialTop)[0]!.ratePerSecond).toBe(1)
})

test('rows are sorted and filtered by what is pressed', () => {
  expect(names(press(['s', 's'])[0])).toEqual(['b', 'a', 'c:x'])
  expect(names(press(['r'])[0])).toEqual(['a', 'c:x', 'b'])
  const filtering = press(['/', 'o', 't', 'h', 'e', 'x', '\u007f'])[0]
  expect([names(filtering), filtering.input]).toEqual([['c:x'], { kind: 'filter', text: 'othe' }])
  expect(names(press(['\r'], filtering)[0])).toEqual(['c:x'])
  expect(names(press(['\u001b'], filtering)[0])).toHaveLength(3)
})

test('a chosen key stays chosen when rows move; it is acted on after a yes', () => {
  const [chosen] = press(['j', 'j'])
  expect(chosen.chosen).toBe('other\u0000c:x')
  const moved = overview(
    three.keys.toReversed().map((one) => ({ ...one, sparkline: [0, one.key === 'c:x' ? 9999 : 1, 0] })),
  )
  const [, effect] = press(['c', 'y'], chosen, moved)
  expect(effect).toMatchObject({ kind: 'act', action: 'cache', key: { key: 'c:x', redisClusterId: 'other' } })
  expect(press(['c', 'n'], chosen)).toMatchObject([{ note: 'nothing was done' }, { kind: 'none' }])
  expect(press(['l', '5', '0', '0', '\r', 'y'], chosen)[1]).toMatchObject({ action: 'limit', limit: 500 })
  expect(press(['l', 'x', '\r'], chosen)[0].note).toContain('a number')
  expect(press(['u', 'y'], chosen)[1]).toMatchObject({ action: 'undo' })
  expect(press(['c'])[0].note).toContain('choose a key first')
})

test('a key that has left the screen can still be acted on, and is named when it is asked for', () => {
  const [chosen] = press(['j', 'j'])
  const without = overview(three.keys.filter(({ key }) => key !== 'c:x'))
  const name = { redisClusterId: 'other', key: 'c:x' }
  expect(press(['u', 'y'], chosen, without)[1]).toEqual({ kind: 'act', action: 'undo', key: name })
  expect(press(['l', '7', '\r', 'y'], chosen, without)[1]).toEqual({
    kind: 'act',
    action: 'limit',
    limit: 7,
    key: name,
  })
  const [asking] = press(['u'], chosen, without)
  expect(renderTop(without, { columns: 120, rows: 40, isColored: false }, asking)).toContain('in force for c:x? y/n')
})

test('the chosen key has a detail; q and Ctrl-C end, also while something is typed', () => {
  const [state] = press(['j', '\r'])
  expect(state.isDetail).toBe(true)
  const detail = { ...three.keys[1]!, topHosts: [{ hostId: 'h1', serviceId: 'shop', ratePerSecond: 7 }], events: [] }
  const text = renderTop(three, { columns: 120, rows: 40, isColored: false }, state, detail)
  expect(text).toMatch(/key +b\n/)
  expect(text).toContain('600/s   60.0% of all')
  expect(text).toContain('shop h1  7/s')
  expect(press(['\u001b'], state)[0].isDetail).toBe(false)
  expect(press(['q'])[1]).toEqual({ kind: 'end' })
  expect(press(['/', 'q'])[1]).toEqual({ kind: 'none' })
  expect(press(['/', '\u0003'])[1]).toEqual({ kind: 'end' })
})

test('the chosen row is on the screen, however many there are', () => {
  const many = overview(
    Array.from({ length: 100 }, (_, n) => key(`key-${String(n).padStart(3, '0')}`, [0, 1000 - n, 0])),
  )
  const [state] = press(
    Array.from({ length: 60 }, () => 'j'),
    initialTop,
    many,
  )
  const text = renderTop(many, { columns: 100, rows: 20, isColored: false }, state)
  expect(text).toContain('> key-059')
  expect(text.split('\n').length).toBeLessThanOrEqual(20)
})
