import { KeyHasher } from '@firebreak/core'
import { expect, test } from 'vitest'
import type { BurstWatch } from './access-buffer.ts'
import { ByteAccesses } from './byte-accesses.ts'

function drained(accesses: ByteAccesses): Map<string, number[]> {
  const rows = new Map<string, number[]>()
  accesses.drain(
    {
      onKey: (bytes, start, end, hash, count, writes, byteCount) => {
        if (hash !== new KeyHasher(3).hash(bytes, start, end)) expect.unreachable()
        rows.set(Buffer.from(bytes.subarray(start, end)).toString(), [count, writes, byteCount])
        return false
      },
      onPiece: () => expect.unreachable(),
    },
    0,
  )
  return rows
}

const burstsAt = (burstCount: number): BurstWatch => ({
  burstCount,
  leftCount: Number.POSITIVE_INFINITY,
  isBurst: (_key, before, count) => before < burstCount && count >= burstCount,
})

function note(accesses: ByteAccesses, text: string, written = -1): void {
  const bytes = Buffer.from(text)
  accesses.note(bytes, 0, bytes.length, written)
}

test('accesses noted in many buffers are counted with what they belong to', () => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  for (let index = 0; index < 200; index++) note(accesses, `key ${index % 3}`, index % 3 === 1 ? 10 : -1)
  accesses.addReads(Buffer.from('key 0'), 1000)
  expect(accesses.count).toBe(1200)
  expect(Object.fromEntries(drained(accesses))).toEqual({
    'key 0': [1067, 0, 0],
    'key 1': [67, 67, 670],
    'key 2': [66, 0, 0],
  })
  accesses.restart()
  expect(accesses.count).toBe(0)
  expect(drained(accesses).size).toBe(0)
})

test('keys of one buffer are counted alike, whether their hashes were known before or not', () => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  const bytes = Buffer.from('abc'.repeat(60))
  for (let at = 0; at < bytes.length; at++) {
    if (at % 7 < 3) accesses.noteTaken(bytes, at, at + 1, -1, accesses.take(bytes, at, at + 1))
    else accesses.note(bytes, at, at + 1, -1)
  }
  expect(accesses.count).toBe(180)
  expect(Object.fromEntries(drained(accesses))).toEqual({ a: [60, 0, 0], b: [60, 0, 0], c: [60, 0, 0] })
})

test('accesses in bytes that stay wait for those of the next ones; in others they do not', () => {
  let asked = 0
  const bursts = {
    ...burstsAt(Number.POSITIVE_INFINITY),
    get burstCount() {
      asked++
      return Number.POSITIVE_INFINITY
    },
  }
  const accesses = new ByteAccesses(1000, new KeyHasher(3), bursts, () => {})
  const kept = Array.from({ length: 5 }, (_, index) => Buffer.from(`${index}x`))
  for (const bytes of kept) {
    accesses.note(bytes, 0, 1, -1)
    accesses.note(bytes, 1, 2, -1)
    accesses.settle(bytes)
  }
  expect([asked, accesses.count]).toEqual([0, 10])
  const used = Buffer.from('yz')
  accesses.note(used, 0, 1, 5)
  accesses.settle(undefined)
  expect(asked).toBe(1)
  used.fill('z')
  accesses.note(used, 0, 1, -1)
  expect(Object.fromEntries(drained(accesses))).toEqual({
    ...Object.fromEntries(kept.map((_, index) => [index, [1, 0, 0]])),
    x: [5, 0, 0],
    y: [1, 1, 5],
    z: [1, 0, 0],
  })
})

test('bytes that change within an event are counted before they do', () => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  const [first, second] = [Buffer.from('a'), Buffer.from('b')]
  accesses.note(first, 0, 1, -1)
  accesses.note(second, 0, 1, -1)
  first.fill('c')
  accesses.settle(second)
  expect(Object.fromEntries(drained(accesses))).toEqual({ a: [1, 0, 0], b: [1, 0, 0] })
})

test('where a key is about to cross, accesses wait for no more than it lacks, eight at least', () => {
  const counted: number[] = []
  const bursts = { burstCount: 1, leftCount: 20, isBurst: () => counted.push(accesses.count) < 0 }
  const accesses: ByteAccesses = new ByteAccesses(1000, new KeyHasher(3), bursts, () => {})
  accesses.restart()
  for (let index = 0; index < 36; index++) {
    const bytes = Buffer.from(`key ${index}`)
    accesses.note(bytes, 0, bytes.length, -1)
    accesses.settle(bytes)
  }
  expect([...new Set(counted)]).toEqual([20, 28, 36])
})

test('keys beyond what the tally takes are counted all the same', () => {
  const accesses = new ByteAccesses(100_000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  for (let pass = 0; pass < 2; pass++) for (let index = 0; index < 20_000; index++) note(accesses, `key ${index}`)
  const rows = drained(accesses)
  expect(rows.size).toBe(20_000)
  expect(new Set([...rows.values()].map(([count]) => count))).toEqual(new Set([2]))
})

test('a key that grows fast is told once, wherever it is counted', () => {
  let bursts = 0
  const accesses = new ByteAccesses(100_000, new KeyHasher(3), burstsAt(5), () => {
    bursts++
  })
  for (let index = 0; index < 9; index++) note(accesses, 'key')
  accesses.flush()
  expect(bursts).toBe(1)
  accesses.addReads(Buffer.from('other'), 50)
  expect(bursts).toBe(2)
})
