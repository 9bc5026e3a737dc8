import fc from 'fast-check'
import { expect, test } from 'vitest'
import { VarintReader } from '../report/varint.ts'
import { KeyHasher } from './key-hasher.ts'
import { KeyTally } from './key-tally.ts'

interface Counts {
  count: number
  writes: number
  bytes: number
}

interface Access {
  readonly key: Uint8Array
  /** Bytes written; -1 for a read. */
  readonly written: number
}

const hasher = new KeyHasher(7)

function add(tally: KeyTally, key: Uint8Array, writes = 0, bytes = 0): number {
  const around = Buffer.concat([Buffer.from('xyz'), key, Buffer.from('z')])
  const hash = hasher.hash(around, 3, 3 + key.length)
  return tally.add(around, 3, 3 + key.length, hash, hasher.check, 1, writes, bytes)
}

/** Counts accesses in batches; every third key already has its hashes. Returns those without a place. */
function addAll(tally: KeyTally, accesses: readonly Access[]): Access[] {
  const placeless: Access[] = []
  const { batch } = tally
  for (let from = 0; from < accesses.length; from += 50) {
    const some = accesses.slice(from, from + 50)
    const bytes = Buffer.concat(some.map(({ key }) => key))
    batch.clear()
    batch.begin(bytes, 0)
    let at = 0
    for (const [nth, { key, written }] of some.entries()) {
      if (!batch.note(bytes, at, at + key.length, written)) expect.unreachable()
      if (nth < some.length / 3) batch.setHashes(hasher.hash(bytes, at, at + key.length), hasher.check)
      at += key.length
    }
    batch.settle()
    tally.prepare()
    for (let stop = 0; ; stop++) {
      stop = tally.addAll(stop, Number.POSITIVE_INFINITY)
      if (stop === some.length) break
      if (tally.sum !== 0) expect.unreachable()
      placeless.push(some[stop]!)
    }
  }
  return placeless
}

/** The counts of an interval, and how many of its keys came in pieces. */
function drained(tally: KeyTally, below = 0, watched: readonly string[] = []) {
  const found = new Map<string, Counts>()
  let inPieces = 0
  const put = (bytes: Uint8Array, counts: Counts) => {
    const key = Buffer.from(bytes).toString('latin1')
    if (found.has(key)) expect.unreachable(`${key} came twice`)
    found.set(key, counts)
    return watched.includes(key)
  }
  tally.drain(
    {
      onKey: (bytes, start, end, hash, count, writes, byteCount) => {
        if (hash !== hasher.hash(bytes, start, end)) expect.unreachable()
        return put(bytes.subarray(start, end), { count, writes, bytes: byteCount })
      },
      onPiece: (bytes, start, end, keys, count) => {
        const reader = new VarintReader(bytes, start, end)
        let left = count
        for (let nth = 0; nth < keys; nth++) {
          const key = reader.view()
          const own = reader.varint() / 2
          if (own >= below) expect.unreachable()
          left -= own
          put(key, { count: own, writes: 0, bytes: 0 })
        }
        expect([left, reader.isAtEnd, reader.isBroken]).toEqual([0, true, false])
        inPieces += keys
      },
    },
    below,
  )
  return { found, inPieces }
}

const key = fc.oneof(
  fc.uint8Array({ maxLength: 80 }),
  fc.constantFrom('a', 'b', 'product:1', 'product:2').map((text) => Buffer.from(text)),
  fc.integer({ min: 100, max: 300 }).map((length) => Buffer.alloc(length, 'long')),
)

function countIn(oracle: Map<string, Counts>, key: Uint8Array, writes: number, bytes: number): number {
  const name = Buffer.from(key).toString('latin1')
  const known = oracle.get(name) ?? { count: 0, writes: 0, bytes: 0 }
  oracle.set(name, { count: known.count + 1, writes: known.writes + writes, bytes: known.bytes + bytes })
  return known.count + 1
}

test('over any intervals every key is counted exactly', () => {
  const access = fc.record({ key, writes: fc.nat(1), bytes: fc.nat(1000) })
  fc.assert(
    fc.property(fc.array(fc.array(access, { maxLength: 60 }), { maxLength: 6 }), (intervals) => {
      const tally = new KeyTally(hasher.seed)
      for (const accesses of intervals) {
        const oracle = new Map<string, Counts>()
        for (const { key, writes, bytes } of accesses)
          expect(add(tally, key, writes, bytes)).toBe(countIn(oracle, key, writes, bytes))
        expect(drained(tally).found).toEqual(oracle)
      }
    }),
  )
})

test('in batches and in pieces every key is counted exactly too', () => {
  const access = fc.record({ key, written: fc.oneof(fc.constant(-1), fc.nat(1000)) })
  fc.assert(
    fc.property(fc.array(fc.array(access, { maxLength: 120 }), { maxLength: 6 }), fc.nat(5), (intervals, below) => {
      const tally = new KeyTally(hasher.seed)
      for (const accesses of intervals) {
        const oracle = new Map<string, Counts>()
        for (const { key, written } of accesses) countIn(oracle, key, written < 0 ? 0 : 1, Math.max(0, written))
        expect(addAll(tally, accesses)).toEqual([])
        expect(drained(tally, below).found).toEqual(oracle)
      }
    }),
  )
})

test('known cold keys are sent in pieces, except those that are watched, written or warm', () => {
  const tally = new KeyTally(hasher.seed)
  const interval = () => {
    for (let index = 0; index < 1000; index++) add(tally, Buffer.from(`key ${index}`))
    add(tally, Buffer.from('key 1'), 1, 10)
    for (let nth = 0; nth < 9; nth++) add(tally, Buffer.from('key 2'))
  }
  interval()
  expect(drained(tally, 10, ['key 3']).inPieces).toBe(0)
  interval()
  const { found, inPieces } = drained(tally, 10, ['key 3'])
  expect([found.size, inPieces]).toEqual([1000, 997])
  interval()
  expect(drained(tally, 10).inPieces).toBe(997)
  interval()
  expect(drained(tally, 10).inPieces).toBe(998)
})

test('a count that does not fit in two bytes of a varint is not part of a piece', () => {
  const tally = new KeyTally(hasher.seed)
  const counts = [8191, 8192, 1_000_000]
  for (let interval = 0; interval < 2; interval++) {
    for (const count of counts) {
      const key = Buffer.from(`key ${count}`)
      tally.add(key, 0, key.length, hasher.hash(key, 0, key.length), hasher.check, count, 0, 0)
    }
    const { found, inPieces } = drained(tally, Number.POSITIVE_INFINITY)
    expect([...found.values()].map(({ count }) => count)).toEqual(counts)
    expect(inPieces).toBe(interval)
  }
})

test('a count that overflows its entry is exact too, and the next interval begins at 0', () => {
  const tally = new KeyTally(hasher.seed)
  const key = Buffer.from('celebrity')
  const hash = hasher.hash(key, 0, key.length)
  const { check } = hasher
  const addMany = (count: number) => tally.add(key, 0, key.length, hash, check, count, 0, 0)
  const { batch } = tally
  for (let nth = 0; nth < 5; nth++) {
    batch.begin(key, 0)
    batch.note(key, 0, key.length, -1)
  }
  batch.settle()
  tally.prepare()
  for (let interval = 0; interval < 3; interval++) {
    expect(addMany(1_048_573)).toBe(1_048_573)
    expect(tally.addAll(0, Number.POSITIVE_INFINITY)).toBe(5)
    expect(addMany(2_000_000)).toBe(3_048_578)
    expect([tally.addAll(4, 10), tally.sum]).toEqual([4, 3_048_579])
    expect(drained(tally, Number.POSITIVE_INFINITY).found.get('celebrity')).toEqual({
      count: 3_048_579,
      writes: 0,
      bytes: 0,
    })
    addMany(7)
    expect(drained(tally).found.get('celebrity')).toEqual({ count: 7, writes: 0, bytes: 0 })
  }
})

test('a batch stops at a key that reaches the limit, and continues after it', () => {
  const tally = new KeyTally(hasher.seed)
  const bytes = Buffer.from('ababab')
  const { batch } = tally
  batch.begin(bytes, 0)
  for (let at = 0; at < bytes.length; at++) batch.note(bytes, at, at + 1, -1)
  batch.settle()
  tally.prepare()
  expect([tally.addAll(0, 2), tally.sum]).toEqual([2, 2])
  expect([tally.addAll(3, 2), tally.sum]).toEqual([3, 2])
  expect([tally.addAll(4, 4)]).toEqual([6])
})

test('a key is counted completely or reported as having no place for the whole interval, and the table then grows', () => {
  const tally = new KeyTally(hasher.seed)
  const keys = Array.from({ length: 20_000 }, (_, index) => ({ key: Buffer.from(`product:${index}`), written: -1 }))
  const round = () => {
    const passes = [0, 1, 2].map(() => addAll(tally, keys))
    const [first, ...others] = passes.map((placeless) => new Set(placeless))
    for (const other of others)
      expect([other.size, [...other].every((access) => first!.has(access))]).toEqual([first!.size, true])
    const { found } = drained(tally)
    expect([...found.values()].every(({ count }) => count === 3)).toBe(true)
    expect(found.size).toBe(keys.length - passes[0]!.length)
    return passes[0]!.length
  }
  const shares = Array.from({ length: 4 }, round)
  expect(shares[0]).toBeGreaterThan(0)
  expect(shares.at(-1)).toBe(0)
})

test('keys that come and go are removed before the table is full of them', () => {
  const tally = new KeyTally(hasher.seed)
  let placeless = 0
  for (let interval = 0; interval < 60; interval++) {
    const keys = Array.from({ length: 2000 }, (_, index) => Buffer.from(`${interval}:${index}`))
    placeless += addAll(
      tally,
      keys.map((key) => ({ key, written: -1 })),
    ).length
    expect(drained(tally).found.size).toBe(keys.length)
  }
  expect(placeless).toBe(0)
})

test('counts of an interval long ago never come back', () => {
  const tally = new KeyTally(hasher.seed)
  const old = Buffer.from('old')
  add(tally, old)
  drained(tally)
  for (let interval = 0; interval < 2 ** 15 - 2; interval++) drained(tally)
  expect(add(tally, old)).toBe(1)
})

test('keys of any sizes fit until the log is full', () => {
  const tally = new KeyTally(hasher.seed)
  const large = (fill: number) => Buffer.alloc(6 * 1024 * 1024, fill)
  expect(add(tally, large(1))).toBe(1)
  expect(add(tally, large(2))).toBe(1)
  expect(add(tally, large(3))).toBe(0)
  expect(add(tally, Buffer.from('small'))).toBe(1)
  expect(drained(tally).found.size).toBe(3)
})
