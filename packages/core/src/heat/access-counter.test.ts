import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { AccessCounter, type AccessCounterOptions } from './access-counter.ts'
import type { AccessDrain } from './access-drain.ts'
import { ByteAccessCounter } from './byte-access-counter.ts'

type Row = [key: string, count: number, writes: number, bytes: number]

interface TestedCounter {
  add(key: string, isWrite?: boolean, bytes?: number): number
  swap(): AccessDrain<string | Uint8Array> | undefined
  readonly totalCount: number
}

function byteCounter(options: AccessCounterOptions): TestedCounter {
  const counter = new ByteAccessCounter({ hashSeed: 99, ...options })
  return {
    add(key, isWrite, bytes) {
      const buffer = Buffer.from(`*${key}*`)
      return counter.add(buffer, 1, buffer.length - 1, counter.hash(buffer, 1, buffer.length - 1), isWrite, bytes)
    },
    swap: () => counter.swap(),
    get totalCount() {
      return counter.totalCount
    },
  }
}

function rowsOf(drain: AccessDrain<string | Uint8Array> | undefined, step = 1000): Row[] {
  const rows: Row[] = []
  while (
    drain!.take(step, (key, count, writes, bytes) => rows.push([Buffer.from(key).toString(), count, writes, bytes]))
  );
  return rows.sort((a, b) => (a[0] < b[0] ? -1 : 1))
}

describe.each([
  ['of strings', (options: AccessCounterOptions): TestedCounter => new AccessCounter(options)],
  ['of bytes', byteCounter],
])('the counter %s', (_, make) => {
  test('counts each interval exactly, whatever the order of accesses, swaps and steps of the drain', () => {
    const access = fc.tuple(fc.integer({ min: 0, max: 30 }), fc.boolean(), fc.nat(500))
    const intervals = fc.array(fc.array(access, { maxLength: 80 }), { maxLength: 8 })
    fc.assert(
      fc.property(intervals, fc.integer({ min: 1, max: 7 }), (all, step) => {
        // Fewer keys than the trace has: the table of keys starts over now and then.
        const counter = make({ maxKeys: 31 })
        for (const accesses of all) {
          const model = new Map<string, [number, number, number]>()
          for (const [id, isWrite, bytes] of accesses) {
            const row = model.get(`k${id}`) ?? [0, 0, 0]
            model.set(`k${id}`, [row[0] + 1, row[1] + (isWrite ? 1 : 0), row[2] + bytes])
            expect(counter.add(`k${id}`, isWrite, bytes)).toBe(row[0] + 1)
          }
          const drain = counter.swap()!
          expect(drain.totalCount).toBe(accesses.length)
          expect(drain.totalWrites).toBe(accesses.filter(([, isWrite]) => isWrite).length)
          expect(drain.totalBytes).toBe(accesses.reduce((sum, [, , bytes]) => sum + bytes, 0))
          expect(drain.keyCount).toBe(model.size)
          expect(drain.errorBound).toBe(0)
          const expected = [...model].map(([key, row]): Row => [key, ...row])
          expect(rowsOf(drain, step)).toEqual(expected.sort((a, b) => (a[0] < b[0] ? -1 : 1)))
        }
      }),
      { numRuns: scale(100, 1000) },
    )
  })

  test('counting goes on while the interval before is being read', () => {
    const counter = make({})
    counter.add('a')
    counter.add('b')
    const first = counter.swap()!
    counter.add('a', true, 10)
    const rows: Row[] = []
    const visit = (key: string | Uint8Array, ...counts: [number, number, number]) =>
      void rows.push([Buffer.from(key).toString(), ...counts])
    expect(first.take(1, visit)).toBe(true)
    counter.add('a')
    expect(counter.swap()).toBe(undefined)
    expect(first.take(1, visit)).toBe(false)
    expect(rows.sort()).toEqual([
      ['a', 1, 0, 0],
      ['b', 1, 0, 0],
    ])
    expect(rowsOf(counter.swap())).toEqual([['a', 2, 1, 10]])
    expect(rowsOf(counter.swap())).toEqual([])
  })

  test('an interval is exact up to maxKeys, however many keys earlier intervals had', () => {
    const counter = make({ maxKeys: 100, overflowKeys: 10 })
    for (let interval = 0; interval < 10; interval++) {
      for (let id = 0; id < 100; id++) counter.add(`k${interval * 60 + id}`)
      const drain = counter.swap()!
      expect(drain.errorBound).toBe(0)
      expect(rowsOf(drain).length).toBe(100)
    }
  })

  test('beyond maxKeys a heavy key is still found, within the stated error, and totals stay exact', () => {
    const counter = make({ maxKeys: 100, overflowKeys: 64 })
    for (let id = 0; id < 100; id++) counter.add(`first${id}`)
    for (let id = 0; id < 5000; id++) {
      counter.add(`flood${id}`, false, 1)
      if (id % 5 === 0) counter.add('heavy', true, 7)
    }
    counter.add('first3')
    expect(counter.totalCount).toBe(6101)
    const drain = counter.swap()!
    expect(drain.totalCount).toBe(6101)
    expect(drain.totalWrites).toBe(1000)
    expect(drain.totalBytes).toBe(12_000)
    expect(drain.keyCount).toBeLessThanOrEqual(164)
    expect(drain.errorBound).toBeLessThanOrEqual((2 * 6000) / 64)
    const rows = new Map(rowsOf(drain).map(([key, ...rest]) => [key, rest]))
    expect(rows.get('first3')).toEqual([2, 0, 0])
    const [count, writes, bytes] = rows.get('heavy')!
    expect(count).toBeGreaterThanOrEqual(1000 - drain.errorBound)
    expect(count).toBeLessThanOrEqual(1000)
    expect([writes, bytes]).toEqual([count, count! * 7])
  })
})

test('a key that exceeded the limit is still counted exactly, and countOf reports both kinds', () => {
  const counter = new AccessCounter({ maxKeys: 1, overflowKeys: 4 })
  for (const key of ['a', 'b', 'a', 'b', 'b']) counter.add(key)
  expect(['a', 'b', 'c'].map((key) => counter.countOf(key))).toEqual([2, 3, 0])
  expect(() => new AccessCounter({ maxKeys: 0 })).toThrow(InvalidOptionError)
})

test('bytes of one key stop at 4 GiB an interval instead of starting over', () => {
  const counter = new AccessCounter()
  for (let nth = 0; nth < 3; nth++) counter.add('big', false, 2 ** 31)
  const bytes: number[] = []
  counter.swap()!.take(1, (_, __, ___, byteCount) => bytes.push(byteCount))
  expect(bytes).toEqual([2 ** 32 - 1])
})

test('a known key takes no memory', () => {
  const counter = new AccessCounter()
  const keys = Array.from({ length: 1000 }, (_, id) => `key:${id}`)
  const visit = () => {}
  const count = (rounds: number) => {
    for (let round = 0; round < rounds; round++) {
      for (const key of keys) counter.add(key, false, 5)
      while (counter.swap()?.take(500, visit));
    }
  }
  count(20)
  globalThis.gc?.()
  const before = process.memoryUsage().heapUsed
  for (const key of keys) for (let round = 0; round < 1000; round++) counter.add(key, true, 5)
  // A million accesses; one object for each would take over 16 MB.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(2e6)
})
