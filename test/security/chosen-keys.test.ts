import { Dict, hashBytes, KeyHasher, KeyTally } from '@firebreak/core/heat'
import { describe, expect, test } from 'vitest'

/**
 * Sets of keys that a stranger would send to make a table slow, or to have one key counted as another: differences that
 * came through a hash that multiplies, and others that are cheap to make in great numbers.
 */
const base = Buffer.from('product:000000000000000000000000:stock:in:warehouse:00')
const attacks: Record<string, (index: number) => Buffer> = {
  // A multiplication takes the top bit to itself, a shift by 15 takes it to bit 16: both are undone in the next word.
  'top bits that the next word takes back': (index) => {
    const key = Buffer.alloc(4 * 32, 0x61)
    for (let bit = 0; bit < 16; bit++) if ((index >>> bit) & 1) flip(key, bit * 8 + 3, bit * 8 + 6, bit * 8 + 7)
    return key
  },
  // The same where two words are taken at a time: any key of 16 bytes had such a twin.
  'top bits that the next two words take back': (index) => {
    const key = Buffer.alloc(16 * 16, 0x61)
    for (let bit = 0; bit < 16; bit++) if ((index >>> bit) & 1) flip(key, bit * 16 + 3, bit * 16 + 10, bit * 16 + 15)
    return key
  },
  'top bits of all words': (index) => {
    const key = Buffer.alloc(4 * 16, 0x61)
    for (let bit = 0; bit < 16; bit++) key[bit * 4 + 3]! ^= ((index >>> bit) & 1) << 7
    return key
  },
  'words that change places': (index) => {
    const key = Buffer.from(base)
    for (let bit = 0; bit < 6; bit++)
      if ((index >>> bit) & 1)
        key
          .subarray(bit * 8, bit * 8 + 8)
          .swap32()
          .reverse()
    key.writeUInt16LE(index >>> 6, 48)
    return key
  },
  'zeros of every length': (index) => Buffer.alloc(index % 65_536),
}
/** Flips the top bit of a word, by its highest byte, and in what follows it bit 16 and the top bit. */
function flip(key: Buffer, top: number, sixteenth: number, nextTop: number): void {
  key[top]! ^= 0x80
  key[sixteenth]! ^= 0x01
  key[nextTop]! ^= 0x80
}

/** The eleven bits of the first hash that stand for a key where counts are not compared, beside all of the second. */
const tagOf = (hash: number) => (hash >>> 20) & 0x7ff
/** Pieces of those 43 bits, in which chance has pairs that agree. */
const pieces: readonly ((hash: number, check: number) => number)[] = [
  (_, check) => check & 0xffff,
  (_, check) => (check >>> 8) & 0xffff,
  (_, check) => check >>> 16,
  (hash, check) => (tagOf(hash) << 5) | (check >>> 27),
]

const seeds = [0, 1, 12_345, 2 ** 31, 2 ** 52 + 12_345_678_901]

describe.each(Object.entries(attacks))('%s', (name, keyOf) => {
  const count = name.startsWith('zeros') ? 4096 : 65_536
  const keys = [
    ...new Map(Array.from({ length: count }, (_, index) => [keyOf(index).toString('latin1'), keyOf(index)])).values(),
  ]

  test.each(seeds)('fall into buckets as chance has it, with the seed %d', (seed) => {
    const buckets = new Int32Array(65_536)
    for (const key of keys) buckets[hashBytes(key, 0, key.length, seed) & 65_535]!++
    // At a load of one, twelve in one bucket has a chance of 10^-4 for all buckets together.
    expect(Math.max(...buckets)).toBeLessThan(14)
    const hasher = new KeyHasher(seed)
    const seen = new Set<bigint>()
    for (const key of keys) {
      const hash = hasher.hash(key, 0, key.length)
      seen.add((BigInt(hash) << 32n) | BigInt(hasher.check >>> 0))
    }
    expect(seen.size).toBe(keys.length)
  })

  test.each(seeds)('no two are counted as one, with the seed %d: 43 bits are as chance has them', (seed) => {
    const hasher = new KeyHasher(seed)
    const tally = new KeyTally(seed)
    const counts = new Map<number, number>()
    const agreeing = pieces.map(() => new Uint16Array(65_536))
    for (const key of keys) {
      const hash = hasher.hash(key, 0, key.length)
      const { check } = hasher
      const count = tally.add(key, 0, key.length, hash, check, 1, 0, 0)
      counts.set(count, (counts.get(count) ?? 0) + 1)
      for (const [nth, piece] of pieces.entries()) agreeing[nth]![piece(hash, check)]!++
    }
    // A key that was taken for another one would have a count of two; 0: the table has no room for it.
    expect([...counts.keys()].filter((count) => count > 1)).toEqual([])
    // A table that is new takes some 8,192 in its first interval.
    expect(counts.get(1)).toBeGreaterThan(0.9 * Math.min(keys.length, 8192))
    const byChance = (keys.length * (keys.length - 1)) / 2 / 65_536
    for (const seen of agreeing) {
      const pairs = seen.reduce((sum, count) => sum + (count * (count - 1)) / 2, 0)
      expect(Math.abs(pairs - byChance)).toBeLessThan(6 * Math.sqrt(byChance))
    }
  })

  test('no difference of two keys is one that many seeds do not see', () => {
    const [one, ...others] = keys
    const trials = 2000
    for (const other of [others[0]!, others[1]!, others[(others.length / 2) | 0]!]) {
      const same = pieces.map(() => 0)
      for (let trial = 0; trial < trials; trial++) {
        const hasher = new KeyHasher(trial * 7_919_317 + 1)
        const hashes = [one!, other].map((key) => [hasher.hash(key, 0, key.length), hasher.check] as const)
        for (const [nth, piece] of pieces.entries()) if (piece(...hashes[0]!) === piece(...hashes[1]!)) same[nth]!++
      }
      // One in 65,536 by chance; all of them at once would be a twin.
      expect(Math.max(...same)).toBeLessThan(5)
    }
  })

  test('a dict full of them costs what one of harmless keys costs', () => {
    const harmless = keys.map((key, index) =>
      Buffer.from(`${index}`.padStart(key.length, 'k').slice(0, key.length || 1)),
    )
    const timeOf = (list: readonly Buffer[]) => {
      const dict = new Dict({ hashSeed: 987_654_321_012 })
      const { user } = process.cpuUsage()
      for (const key of list) dict.findOrInsert(key, 0, key.length, dict.hash(key, 0, key.length))
      return process.cpuUsage().user - user
    }
    // The best of some runs each: another process may have had the machine. Chains of thousands cost a hundredfold.
    const best = (list: readonly Buffer[]) => Math.min(...Array.from({ length: 3 }, () => timeOf(list)))
    expect(best(keys)).toBeLessThan(10 * best(harmless) + 20_000)
  })
})

test('values are of the very key: a dict compares all of it, whatever its hash', () => {
  const dict = new Dict({ hashSeed: 1 })
  const names = Array.from({ length: 64 }, (_, index) => Buffer.from(`user:${index}`))
  const entries = names.map((name) => dict.findOrInsert(name, 0, name.length, 5))
  expect(new Set(entries).size).toBe(names.length)
  expect(names.map((name) => dict.findOrInsert(name, 0, name.length, 5))).toEqual(entries)
})
