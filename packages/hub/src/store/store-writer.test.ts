import type { HistoryEvent } from '@firebreak/core'
import { fakeRuntime } from '@firebreak/testkit'
import { beforeEach, expect, test } from 'vitest'
import { AlarmBoard } from '../alarms/alarm-board.ts'
import type { EntryName, HubStore, StoredEntry } from './hub-store.ts'
import { Journal, versionBlock } from './journal.ts'
import { MemoryStore } from './memory-store.ts'

/** More than the writer keeps of anything. */
const many = 12_000

let kept: MemoryStore
let refuses: (method: string) => boolean
let runtime: ReturnType<typeof fakeRuntime>
let alarms: AlarmBoard
let journal: Journal

beforeEach(() => {
  kept = new MemoryStore()
  refuses = () => false
  runtime = fakeRuntime()
  alarms = new AlarmBoard(runtime.clock)
  const store: HubStore = new Proxy(kept, {
    get(target, name: keyof MemoryStore) {
      const member = target[name]
      if (typeof member !== 'function') return member
      if (refuses(name)) return () => Promise.reject(new Error('the disk is full'))
      return member.bind(target)
    },
  })
  const logger = { info() {}, warn() {} }
  journal = new Journal({ store, reservedVersion: versionBlock, runtime, logger, alarms })
})

const event = (n: number): HistoryEvent => ({
  ...{ at: n, kind: 'hot', redisClusterId: 'c', ruleId: 'r' },
  ...{ key: `k${n}`, text: '' },
})
const name = (n: number): EntryName => ({ redisClusterId: 'c', key: `k${n}`, ruleId: 'r' })
const entry = (n: number) => ({ entry: { ...name(n), until: n }, services: [] }) as unknown as StoredEntry
const change = () => journal.change('ann', 'switch off', false, true, 'first')
const throwOff = () => journal.saveSwitch(true, change, async () => {})

/** A disk that is full while a busy hub goes on deciding. */
async function outage(): Promise<void> {
  refuses = () => true
  expect(await throwOff()).toBe(false)
  for (let n = 1; n <= many; n++) {
    journal.record(event(n))
    journal.saveEntries([entry(n)], [name(n - 1)])
    journal.reserve(n)
  }
  await runtime.clock.advanceAsync(5000, 500)
}

/** The store answers again, and gets what waits. */
async function over(): Promise<void> {
  refuses = () => false
  await runtime.clock.advanceAsync(5000, 500)
}

test('a switch that waits for the store is not pushed out by other writes, however many there are', async () => {
  await outage()
  expect(journal.isSwitchPending).toBe(true)
  await over()
  expect((await kept.load()).isOff).toBe(true)
  expect(await kept.audit(9)).toHaveLength(1)
  expect(journal.isSwitchPending).toBe(false)
})

test('no version is given out twice after an outage', async () => {
  await outage()
  await over()
  expect((await kept.load()).versionFloor).toBeGreaterThan(many)
})

test('history goes on after an outage that was longer than what is kept for the store', async () => {
  await outage()
  await over()
  journal.record(event(many + 1))
  await over()
  const events = await kept.history({ limit: 2 * many })
  expect(events[0]?.key).toBe(`k${many + 1}`)
  expect(events.length + journal.lost.history).toBe(many + 1)
  expect(journal.lost.history).toBeGreaterThan(0)
})

test('of an entry that changed while the store was away only the last state is written', async () => {
  await outage()
  await over()
  expect((await kept.load()).entries.map((stored) => stored.entry.key)).toEqual([`k${many}`])
  expect(journal.waiting).toBe(0)
})

test('one write that the store refuses for ever holds up no other, and the alarm stays until it is accepted', async () => {
  refuses = (method) => method === 'appendHistory'
  journal.record(event(1))
  await runtime.clock.advanceAsync(3000, 500)
  refuses = (method) => method === 'appendHistory' || method === 'saveSwitch'
  expect(await throwOff()).toBe(false)
  refuses = (method) => method === 'appendHistory'
  await runtime.clock.advanceAsync(5000, 500)
  expect((await kept.load()).isOff).toBe(true)
  expect(alarms.list().map(({ id }) => id)).toEqual(['store'])
  await over()
  expect(await kept.history({ limit: 9 })).toHaveLength(1)
  expect(alarms.list()).toEqual([])
})

test('what found no room is told with the alarm', async () => {
  await outage()
  expect(alarms.list()[0]?.retry).toMatch(/the write is retried every second.*\d+ events of the history are lost/)
})
