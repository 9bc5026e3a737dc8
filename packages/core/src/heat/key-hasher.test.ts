import fc from 'fast-check'
import { expect, test } from 'vitest'
import { KeyBatch } from './key-batch.ts'
import { KeyHasher } from './key-hasher.ts'
import { TallyKernel } from './tally-kernel.ts'

function hashesOf(keys: readonly Uint8Array[], seed: number): [number, number][] {
  const hasher = new KeyHasher(seed)
  return keys.map((key) => [hasher.hash(key, 0, key.length), hasher.check])
}

test('a key has the same hashes wherever it is in memory, alone or in a batch', () => {
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

test.each(Object.entries(families))('%s spread randomly over a table, and none is mistaken for another', (_, keyOf) => {
  const keys = new Map<string, Buffer>()
  for (let index = 0; index < 50_000; index++) {
    const key = keyOf(index)
    keys.set(key.toString('latin1'), key)
  }
  const hashes = hashesOf([...keys.values()], 12_345)
  const [places, count] = [16_384, keys.size]
  const taken = new Set(hashes.map(([hash]) => hash & (places - 1)))
  // The number of slots that stay free by chance, and five standard deviations of it.
  const free = places * Math.exp(-count / places)
  expect(Math.abs(places - taken.size - free)).toBeLessThan(5 * Math.sqrt(free) + 5)
  expect(new Set(hashes.map(([hash, check]) => `${hash} ${check}`)).size).toBe(count)
  // Either hash alone has as few collisions as chance gives: 0.3 pairs of 50,000.
  for (const nth of [0, 1]) expect(count - new Set(hashes.map((pair) => pair[nth])).size).toBeLessThan(8)
})

test('the hashes are those of HalfSipHash-1-3 with 64 bits', () => {
  // Compared with the published algorithm, step by step and with whole words.
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 70 }), fc.maxSafeNat(), (key, seed) => {
      expect(hashesOf([key], seed)).toEqual([published(key, seed)])
    }),
  )
})

function published(key: Uint8Array, seed: number): [number, number] {
  const [k0, k1] = [Number(BigInt(seed) & 0xffff_ffffn), Number(BigInt(seed) >> 32n)]
  const v = Uint32Array.of(k0, k1 ^ 0xee, k0 ^ 0x6c796765, k1 ^ 0x74656462)
  const rotate = (nth: number, bits: number) => (v[nth] = (v[nth]! << bits) | (v[nth]! >>> (32 - bits)))
  const round = () => {
    v[0]! += v[1]!
    rotate(1, 5)
    v[1]! ^= v[0]!
    rotate(0, 16)
    v[2]! += v[3]!
    rotate(3, 8)
    v[3]! ^= v[2]!
    v[0]! += v[3]!
    rotate(3, 7)
    v[3]! ^= v[0]!
    v[2]! += v[1]!
    rotate(1, 13)
    v[1]! ^= v[2]!
    rotate(2, 16)
  }
  const padded = Buffer.alloc((Math.floor(key.length / 4) + 1) * 4)
  padded.set(key)
  padded[padded.length - 1] = key.length & 0xff
  for (let at = 0; at < padded.length; at += 4) {
    v[3]! ^= padded.readUInt32LE(at)
    round()
    v[0]! ^= padded.readUInt32LE(at)
  }
  v[2]! ^= 0xee
  for (let nth = 0; nth < 3; nth++) round()
  const first = (v[1]! ^ v[3]!) | 0
  v[1]! ^= 0xdd
  for (let nth = 0; nth < 3; nth++) round()
  return [first, (v[1]! ^ v[3]!) | 0]
}
