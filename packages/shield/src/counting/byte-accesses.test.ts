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
