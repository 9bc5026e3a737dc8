import { KeyHasher } from '@firebreak/core/heat'
import fc from 'fast-check'
import { expect, onTestFinished, test, vi } from 'vitest'
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

test('accesses noted in many buffers are counted with their attributes', () => {
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

test('keys of one buffer are counted the same, whether their hashes were known before or not', () => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  const bytes = Buffer.from('abc'.repeat(60))
  for (let at = 0; at < bytes.length; at++) {
    if (at % 7 < 3) accesses.noteTaken(bytes, at, at + 1, -1, accesses.take(bytes, at, at + 1))
    else accesses.note(bytes, at, at + 1, -1)
  }
  expect(accesses.count).toBe(180)
  expect(Object.fromEntries(drained(accesses))).toEqual({ a: [60, 0, 0], b: [60, 0, 0], c: [60, 0, 0] })
})

test('accesses wait for those of the next bytes, whatever happens to their own bytes', () => {
  let asked = 0
  const bursts = {
    ...burstsAt(Number.POSITIVE_INFINITY),
    get burstCount() {
      asked++
      return Number.POSITIVE_INFINITY
    },
  }
  const accesses = new ByteAccesses(1000, new KeyHasher(3), bursts, () => {})
  const bytes = Buffer.alloc(2)
  for (let index = 0; index < 5; index++) {
    bytes.write(`${index}x`)
    accesses.note(bytes, 0, 1, -1)
    accesses.note(bytes, 1, 2, index)
    accesses.settle()
  }
  bytes.fill('z')
  expect([asked, accesses.count]).toEqual([0, 10])
  expect(Object.fromEntries(drained(accesses))).toEqual({
    ...Object.fromEntries(Array.from({ length: 5 }, (_, index) => [index, [1, 0, 0]])),
    x: [5, 5, 10],
  })
})

test('keys are found anywhere in buffers of any size, in any order', () => {
  const place = fc.record({ at: fc.nat(30_000), length: fc.nat(60) })
  fc.assert(
    fc.property(fc.array(fc.record({ size: fc.nat(40_000), places: fc.array(place, { maxLength: 40 }) })), (pieces) => {
      const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
      const expected = new Map<string, number[]>()
      for (const { size, places } of pieces) {
        const bytes = Buffer.from(Array.from({ length: size }, (_, index) => 97 + ((index * 7919) % 26)))
        for (const { at, length } of places) {
          const [start, end] = [Math.min(at, size), Math.min(at + length, size)]
          accesses.note(bytes, start, end, -1)
          const key = bytes.toString('latin1', start, end)
          expected.set(key, [(expected.get(key)?.[0] ?? 0) + 1, 0, 0])
        }
        accesses.settle()
        bytes.fill(0)
      }
      expect(drained(accesses)).toEqual(expected)
    }),
    { numRuns: 40 },
  )
})

test.each([10_000, 40_000])('a key larger than a batch is counted too', (times) => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  const bytes = Buffer.from(`small${'large'.repeat(times)}`)
  for (let nth = 0; nth < 3; nth++) {
    accesses.note(bytes, 0, 5, -1)
    accesses.note(bytes, 5, bytes.length, -1)
    accesses.settle()
  }
  expect([...drained(accesses)].map(([key, [count]]) => [key.length, count])).toEqual([
    [5, 3],
    [5 * times, 3],
  ])
})

test('bytes that change within an event are counted before they do', () => {
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  const [first, second] = [Buffer.from('a'), Buffer.from('b')]
  accesses.note(first, 0, 1, -1)
  accesses.note(second, 0, 1, -1)
  first.fill('c')
  accesses.settle()
  expect(Object.fromEntries(drained(accesses))).toEqual({ a: [1, 0, 0], b: [1, 0, 0] })
})

test('if a key is about to cross its threshold, only as many accesses wait as it lacks, at least eight', () => {
  const counted: number[] = []
  const bursts = { burstCount: 1, leftCount: 20, isBurst: () => counted.push(accesses.count) < 0 }
  const accesses: ByteAccesses = new ByteAccesses(1000, new KeyHasher(3), bursts, () => {})
  accesses.restart()
  for (let index = 0; index < 36; index++) {
    const bytes = Buffer.from(`key ${index}`)
    accesses.note(bytes, 0, bytes.length, -1)
    accesses.settle()
  }
  expect([...new Set(counted)]).toEqual([20, 28, 36])
})

test('keys beyond the size of the tally are still counted', () => {
  const accesses = new ByteAccesses(100_000, new KeyHasher(3), burstsAt(Number.POSITIVE_INFINITY), () => {})
  for (let pass = 0; pass < 2; pass++) for (let index = 0; index < 20_000; index++) note(accesses, `key ${index}`)
  const rows = drained(accesses)
  expect(rows.size).toBe(20_000)
  expect(new Set([...rows.values()].map(([count]) => count))).toEqual(new Set([2]))
})

test('a key that grows fast is reported once, wherever it is counted', () => {
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

test('without WebAssembly everything is still counted', () => {
  onTestFinished(() => void vi.unstubAllGlobals())
  vi.stubGlobal('WebAssembly', undefined)
  let bursts = 0
  const accesses = new ByteAccesses(1000, new KeyHasher(3), burstsAt(5), () => {
    bursts++
  })
  for (let index = 0; index < 8; index++) note(accesses, 'read')
  note(accesses, 'written', 10)
  const key = Buffer.from('taken')
  accesses.noteTaken(key, 0, key.length, -1, accesses.take(key, 0, key.length))
  accesses.settle()
  accesses.flush()
  expect([accesses.count, bursts]).toEqual([10, 1])
  expect(Object.fromEntries(drained(accesses))).toEqual({ read: [8, 0, 0], written: [1, 1, 10], taken: [1, 0, 0] })
})
