import fc from 'fast-check'
import { expect, test } from 'vitest'
import { hashBytes } from '../dict/hash-bytes.ts'
import { KeyTally } from './key-tally.ts'

interface Counts {
  count: number
  writes: number
  bytes: number
}

const seed = 7

function add(tally: KeyTally, key: Uint8Array, writes = 0, bytes = 0): number {
  const around = Buffer.concat([Buffer.from('xyz'), key, Buffer.from('z')])
  const hash = tally.take(around, 3, 3 + key.length)
  return tally.add(around, 3, 3 + key.length, hash, tally.check, 1, writes, bytes)
}

function drained(tally: KeyTally): Map<string, Counts> {
  const found = new Map<string, Counts>()
  tally.drain((bytes, start, end, hash, count, writes, byteCount) => {
    const key = Buffer.from(bytes.subarray(start, end)).toString('latin1')
    expect(found.has(key)).toBe(false)
    expect(hash).toBe(hashBytes(bytes, start, end, seed))
    found.set(key, { count, writes, bytes: byteCount })
  })
  return found
}

test('over any intervals every key is counted exactly', () => {
  const key = fc.oneof(
    fc.uint8Array({ maxLength: 80 }),
    fc.constantFrom('a', 'b', 'product:1', 'product:2').map((text) => Buffer.from(text)),
  )
  const access = fc.record({ key, writes: fc.nat(1), bytes: fc.nat(1000) })
  fc.assert(
    fc.property(fc.array(fc.array(access, { maxLength: 60 }), { maxLength: 6 }), (intervals) => {
      const tally = new KeyTally(seed)
      for (const accesses of intervals) {
        const oracle = new Map<string, Counts>()
        for (const { key, writes, bytes } of accesses) {
          const name = Buffer.from(key).toString('latin1')
          const known = oracle.get(name) ?? { count: 0, writes: 0, bytes: 0 }
          expect(add(tally, key, writes, bytes)).toBe(known.count + 1)
          oracle.set(name, { count: known.count + 1, writes: known.writes + writes, bytes: known.bytes + bytes })
        }
        expect(tally.size).toBe(oracle.size)
        expect(drained(tally)).toEqual(oracle)
      }
    }),
  )
})

test('a key is counted whole or told to have no place for the whole interval, and the table grows for the next', () => {
  const tally = new KeyTally(seed)
  const keys = Array.from({ length: 20_000 }, (_, index) => Buffer.from(`product:${index}`))
  const round = () => {
    const placeless = new Set<number>()
    let wrong = 0
    for (let pass = 0; pass < 3; pass++) {
      for (const [index, key] of keys.entries()) {
        const sum = add(tally, key)
        if (pass === 0 && sum === 0) placeless.add(index)
        else if (sum !== (placeless.has(index) ? 0 : pass + 1)) wrong++
      }
    }
    let counted = 0
    tally.drain((_bytes, _start, _end, _hash, count) => {
      if (count === 3) counted++
    })
    expect(wrong).toBe(0)
    expect(counted).toBe(keys.length - placeless.size)
    return placeless.size
  }
  const shares = Array.from({ length: 4 }, round)
  expect(shares[0]).toBeGreaterThan(0)
  expect(shares.at(-1)).toBeLessThan(50)
})

test('counts of an interval long ago never come back', () => {
  const tally = new KeyTally(seed)
  const old = Buffer.from('old')
  add(tally, old)
  drained(tally)
  for (let interval = 0; interval < 2 ** 15 - 2; interval++) tally.drain(() => {})
  expect(add(tally, old)).toBe(1)
})

test('keys of any sizes fit until the log is full', () => {
  const tally = new KeyTally(seed)
  const large = (fill: number) => Buffer.alloc(6 * 1024 * 1024, fill)
  expect(add(tally, large(1))).toBe(1)
  expect(add(tally, large(2))).toBe(1)
  expect(add(tally, large(3))).toBe(0)
  expect(add(tally, Buffer.from('small'))).toBe(1)
  expect(drained(tally).size).toBe(3)
})
