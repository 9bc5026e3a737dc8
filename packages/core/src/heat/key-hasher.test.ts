import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyBatch } from './key-batch.ts'
import { KeyHasher } from './key-hasher.ts'
import { TallyKernel } from './tally-kernel.ts'

function hashesOf(keys: readonly Uint8Array[], seed: number): [number, number][] {
  const hasher = new KeyHasher(seed)
  return keys.map((key) => [hasher.hash(key, 0, key.length), hasher.check])
}

test('a key has the same hashes wherever it stands, alone or in a batch', () => {
  const kernel = new TallyKernel()
  const keys = fc.array(fc.uint8Array({ maxLength: 40 }), { minLength: 1, maxLength: 40 })
  fc.assert(
    fc.property(keys, fc.integer(), (keys, seed) => {
      const bytes = Buffer.concat([Buffer.from('before'), ...keys])
      const batch = new KeyBatch(kernel, seed)
      batch.begin(bytes, 6)
      let at = 6
      for (const { length } of keys) {
        batch.note(bytes, at, at + length, -1)
        at += length
      }
      batch.settle()
      batch.hash()
      const found = keys.map((_, nth) => [batch.hashes[nth], batch.checks[nth]])
      expect(found).toEqual(hashesOf(keys, seed))
    }),
  )
})

test('a seed makes other hashes', () => {
  const key = Buffer.from('product:1')
  expect(hashesOf([key], 1)).not.toEqual(hashesOf([key], 2))
})

const families: Record<string, (index: number) => Buffer> = {
  'numbers in a row': (index) => Buffer.from(`key:${String(index).padStart(12, '0')}`),
  'short numbers': (index) => Buffer.from(String(index)),
  'numbers before a long end': (index) => Buffer.from(`user:${index}:profile:settings:notifications`),
  'four bytes that count': (index) => {
    const bytes = Buffer.alloc(4)
    bytes.writeUInt32LE(index)
    return bytes
  },
  'single bits in zeros of many lengths': (index) => {
    const bytes = Buffer.alloc(8 + (index % 1000))
    bytes[Math.floor(index / 1000) % bytes.length]! |= 1 << (Math.floor(index / 1000) % 8)
    return bytes
  },
}

test.each(Object.entries(families))('%s spread like chance over a table, and none is taken for another', (_, keyOf) => {
  const keys = new Map<string, Buffer>()
  for (let index = 0; index < 50_000; index++) {
    const key = keyOf(index)
    keys.set(key.toString('latin1'), key)
  }
  const hashes = hashesOf([...keys.values()], 12_345)
  const [places, count] = [16_384, keys.size]
  const taken = new Set(hashes.map(([hash]) => hash & (places - 1)))
  // What is left free by chance, and five standard deviations of it.
  const free = places * Math.exp(-count / places)
  expect(Math.abs(places - taken.size - free)).toBeLessThan(5 * Math.sqrt(free) + 5)
  expect(new Set(hashes.map(([hash, check]) => `${hash} ${check}`)).size).toBe(count)
  // Either hash alone has as few collisions as chance gives: 0.3 pairs of 50,000.
  for (const nth of [0, 1]) expect(count - new Set(hashes.map((pair) => pair[nth])).size).toBeLessThan(8)
})
