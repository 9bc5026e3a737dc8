import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { RdbError } from '../errors.ts'
import { length, listpack, longLength, RdbBuilder, text, ziplist, zipmap } from '../testing/rdb-builder.ts'
import { RdbParser, type RdbRecord } from './rdb-parser.ts'

type Seen = Omit<RdbRecord, 'key'> & { key: string }

function parse(dump: Uint8Array, pieceBytes = dump.length): { keys: Seen[]; notes: string[]; parser: RdbParser } {
  const keys: Seen[] = []
  const notes: string[] = []
  const parser = new RdbParser({
    key: (record) => keys.push({ ...record, key: record.key.toString() }),
    note: (note) => notes.push(note),
  })
  for (let at = 0; at < dump.length; at += pieceBytes) parser.push(dump.subarray(at, at + pieceBytes))
  parser.end()
  return { keys, notes, parser }
}

const names = (count: number, prefix = 'item') => Array.from({ length: count }, (_, index) => `${prefix}-${index}`)
const eight = (value: bigint) => {
  const bytes = Buffer.alloc(8)
  bytes.writeBigInt64LE(value)
  return bytes
}

/** A dump with one of everything. */
function everything(): Buffer {
  const pairs = names(5).map((name) => [name, 'value'] as const)
  return new RdbBuilder(12)
    .raw([250])
    .raw(text('redis-ver'))
    .raw(text('7.4.0'))
    .raw([254, 0, 251, 9, 1])
    .key(0, 'string', text('x'.repeat(100)))
    .raw([252])
    .raw(eight(1_800_000_000_000n))
    .raw([249, 77])
    .key(4, 'hash', length(5), ...pairs.flat().map((part) => text(part)))
    .key(9, 'zipmap', text(zipmap(pairs)))
    .key(10, 'ziplist', text(ziplist(names(7))))
    .key(14, 'quicklist', length(2), text(ziplist(names(3))), text(ziplist(names(4))))
    .key(18, 'quicklist2', length(2), [1], text('plain'.repeat(50)), [2], text(listpack(names(6))))
    .key(24, 'hash-ttl', eight(1n), length(2), [5], text('a'), text('1'), [0], text('b'), text('2'))
    .key(25, 'hash-lp-ttl', eight(1n), text(listpack(['a', '1', 1_800_000_000_000n, 'b', '2', 0n])))
    .key(7, 'module', longLength(0x123456789abcdef0n), [1, 5, 5], text('data'), [0])
    .raw([248, 60])
    .key(0, 'last', [0xc1, 0x10, 0x27])
    .build()
}

test('a dump is read the same in one piece and byte by byte', () => {
  const dump = everything()
  const whole = parse(dump)
  for (const pieceBytes of [1, 7, 64, 100]) expect(parse(dump, pieceBytes).keys, `${pieceBytes}`).toEqual(whole.keys)
  expect(whole.keys.map(({ key, type, elements }) => [key, type, elements])).toEqual([
    ['string', 'string', 1],
    ['hash', 'hash', 5],
    ['zipmap', 'hash', 5],
    ['ziplist', 'list', 7],
    ['quicklist', 'list', 7],
    ['quicklist2', 'list', 7],
    ['hash-ttl', 'hash', 2],
    ['hash-lp-ttl', 'hash', 2],
    ['module', 'module', 0],
    ['last', 'string', 1],
  ])
})

test('TTL, LFU, LRU and field TTLs belong to the key that follows them', () => {
  const { keys } = parse(everything())
  const byName = Object.fromEntries(keys.map((key) => [key.key, key]))
  expect(byName['hash']).toMatchObject({ expiresAtMs: 1_800_000_000_000, frequency: 77, idleSeconds: -1 })
  expect(byName['zipmap']).toMatchObject({ expiresAtMs: -1, frequency: -1, idleSeconds: -1 })
  expect(byName['last']).toMatchObject({ idleSeconds: 60, encoding: 'int' })
  expect(byName['hash-ttl']!.fieldsWithTtl).toBe(1)
  expect(byName['hash-lp-ttl']!.fieldsWithTtl).toBe(1)
})

test('a module value is skipped with a note that names it', () => {
  expect(parse(everything()).notes).toEqual([expect.stringMatching(/module type .{9} were skipped/)])
})

test('type 22 is one thing to Redis and another to Valkey', () => {
  const redis = new RdbBuilder(12).key(22, 'h', length(1), [9], text('field'), text('value')).build()
  expect(parse(redis).keys).toMatchObject([{ elements: 1, fieldsWithTtl: 1 }])
  const valkey = new RdbBuilder(80, 'VALKEY')
    .key(22, 'h', length(2), text('f'), text('v'), eight(-1n), text('g'), text('w'), eight(1_800_000_000_000n))
    .build()
  const { keys, parser } = parse(valkey)
  expect(keys).toMatchObject([{ elements: 2, fieldsWithTtl: 1 }])
  expect(parser).toMatchObject({ isValkey: true, version: 80 })
})

test('if a count field is full, the entries are counted one by one', () => {
  const entries = Array.from({ length: 70_000 }, () => 'ab')
  const dump = new RdbBuilder(11)
    .key(20, 'set', text(listpack(entries)))
    .key(10, 'list', text(ziplist(entries)))
    .key(9, 'map', text(zipmap(Array.from({ length: 300 }, () => ['k', 'v'] as const))))
    .build()
  for (const pieceBytes of [dump.length, 4096]) {
    expect(parse(dump, pieceBytes).keys.map(({ elements }) => elements)).toEqual([70_000, 70_000, 300])
  }
})

test('versions before 5 have no checksum, and later ones may leave it out', () => {
  for (const version of [1, 2, 3, 4]) {
    expect(parse(new RdbBuilder(version).key(0, 'k', text('v')).build()).keys).toHaveLength(1)
  }
  const { keys, notes } = parse(new RdbBuilder(9).key(0, 'k', text('v')).build({ checksum: false }))
  expect(keys).toHaveLength(1)
  expect(notes).toEqual(['the dump was written without a checksum'])
})

function failure(dump: Uint8Array, options = {}): RdbError {
  const parser = new RdbParser({ key() {} }, options)
  try {
    parser.push(dump)
    parser.end()
  } catch (error) {
    expect(error).toBeInstanceOf(RdbError)
    return error as RdbError
  }
  throw new Error('the dump was taken for whole')
}

test('for a file that is cut off anywhere, the error says so and where', () => {
  const dump = everything()
  for (let end = 0; end < dump.length; end++) {
    const error = failure(dump.subarray(0, end))
    expect(error.code, `cut at ${end}`).toBe('FB_RDB_TRUNCATED')
    expect(error.offset, `cut at ${end}`).toBeLessThanOrEqual(end)
  }
})

test('one flipped bit anywhere is found', () => {
  const dump = everything()
  for (let bit = 0; bit < dump.length * 8; bit++) {
    const damaged = Buffer.from(dump)
    damaged[bit >> 3]! ^= 1 << (bit & 7)
    const error = failure(damaged)
    expect(error.offset).toBeLessThanOrEqual(dump.length)
    expect(error.message).toMatch(/^RDB at byte \d+: /)
  }
})

test('a length of exabytes is refused at once, with its offset, and takes no memory', () => {
  const before = process.memoryUsage().rss
  for (const huge of [0xffff_ffff_ffff_ffffn, 0x7fff_ffff_ffffn, 0xffff_ffffn]) {
    for (const type of [0, 1, 4, 14, 15, 18, 20]) {
      const dump = Buffer.concat([Buffer.from('REDIS0011'), Buffer.from([type, 1, 0x6b]), longLength(huge)])
      const error = failure(Buffer.concat([dump, Buffer.alloc(1000)]), { totalBytes: dump.length + 1000 })
      expect(error.offset).toBeGreaterThanOrEqual(11)
      expect(error.offset).toBeLessThanOrEqual(dump.length + 1000)
    }
  }
  expect(process.memoryUsage().rss - before).toBeLessThan(100 << 20)
})

test('random damage always ends in an error of the dump', () => {
  const dump = everything()
  const change = fc.tuple(fc.nat(dump.length - 1), fc.uint8Array({ minLength: 1, maxLength: 12 }))
  fc.assert(
    fc.property(
      fc.array(change, { minLength: 1, maxLength: 4 }),
      fc.integer({ min: 1, max: 200 }),
      (changes, piece) => {
        const damaged = Buffer.from(dump)
        for (const [at, bytes] of changes) damaged.set(bytes.subarray(0, damaged.length - at), at)
        if (damaged.equals(dump)) return
        try {
          parse(damaged, piece)
          // Damage after the end mark of a shortened dump is not part of it.
        } catch (error) {
          expect(error).toBeInstanceOf(RdbError)
        }
      },
    ),
    { numRuns: scale(3000, 100_000) },
  )
})

test('anything but a dump, or one of a future version, is refused by name', () => {
  expect(failure(Buffer.from('<html><body>')).message).toMatch(/not a dump: it begins with "<html><bo"/)
  expect(failure(Buffer.from('REDIS0099......')).code).toBe('FB_RDB_UNSUPPORTED')
  expect(failure(new RdbBuilder(13).key(26, 's', length(0)).build()).message).toMatch(/idempotent producers/)
})
