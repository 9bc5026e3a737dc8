import { expect, test } from 'vitest'
import type { Finding } from '../findings/finding.ts'
import type { FoundKey } from '../keys/found-key.ts'
import { advise } from './advice.ts'

function finding(parts: Partial<Finding>): Finding {
  return {
    version: 1,
    id: '00000000-0000-4000-8000-000000000000',
    kind: 'big',
    method: 'scan',
    startedAtMs: 0,
    tookMs: 0,
    source: [],
    topology: 'standalone',
    isComplete: true,
    scanned: 0,
    keys: [],
    notes: [],
    ...parts,
  }
}

const big = (key: FoundKey) => advise([finding({ keys: [key] })])
const actions = (advice: ReturnType<typeof advise>) => advice.map(({ action }) => action)

test.each(['hash', 'set', 'list'] as const)('a %s of a million is split into 200 segments of 5,000', (type) => {
  const [split, ...rest] = big({ key: 'users', type, elements: 1_000_000, bytes: 100 << 20 })
  expect(split).toMatchObject({ action: 'split', severity: 'high', isApplicable: true })
  expect(split!.remedy).toMatch(/200 segments of about 5,000/)
  expect(split!.commands).toEqual([
    'firebreak find advise --apply split --key users --segments 200',
    'firebreak find advise --apply cut-over --key users',
  ])
  expect(rest.map(({ action }) => action)).toEqual(['unlink', 'lazyfree'])
  expect(rest[0]!.commands).toEqual(['UNLINK users'])
  expect(rest[1]!.commands).toContain('CONFIG SET lazyfree-lazy-expire yes')
})

test('a big sorted set and stream are trimmed, a big string is shrunk, a small key is left alone', () => {
  expect(actions(big({ key: 'z', type: 'zset', elements: 1e6, bytes: 1e8 }))).toContain('trim')
  expect(big({ key: 's', type: 'stream', elements: 1e6, bytes: 1e8 })[0]!.commands[0]).toBe('XTRIM s MAXLEN ~ 10000')
  expect(actions(big({ key: 't', type: 'string', elements: 1, bytes: 20 << 20 }))).toEqual(['shrink'])
  expect(big({ key: 'h', type: 'hash', elements: 100, bytes: 5000 })).toEqual([])
})

test('keys with spaces and quotes are quoted for a shell', () => {
  const [split] = big({ key: "it's mine", type: 'hash', elements: 1e6, bytes: 1e8 })
  expect(split!.commands[0]).toContain(`--key 'it'\\''s mine'`)
})

test('HGETALL of a hot hash becomes HMGET; a read-hot key is cached or copied; a write-hot one is spread', () => {
  const hot = (key: FoundKey) => advise([finding({ kind: 'hot', method: 'monitor', keys: [key] })])
  const whole = hot({ key: 'profile', accesses: 1000, writes: 0, share: 0.3, commands: { HGETALL: 900, HSET: 100 } })
  expect(actions(whole)).toEqual(['cache-or-copy', 'read-less'])
  expect(whole[1]!.commands).toEqual(['HMGET profile field1 field2'])
  expect(actions(hot({ key: 'stock', accesses: 1000, writes: 900, share: 0.3, commands: { DECR: 900 } }))).toEqual([
    'spread-writes',
  ])
  expect(hot({ key: 'mild', accesses: 10, writes: 0, share: 0.001, commands: { GET: 10 } })).toEqual([])
})

test('many small keys become hashes, and a group without TTL gets spread-out TTLs', () => {
  const leaf = {
    prefix: 'user:<n>',
    keys: 2_000_000,
    bytes: 160_000_000,
    elements: 2_000_000,
    keysWithTtl: 0,
    children: [],
  }
  const root = {
    prefix: '',
    keys: 2_000_000,
    bytes: 160_000_000,
    elements: 2_000_000,
    keysWithTtl: 0,
    children: [leaf],
  }
  const advice = advise([finding({ prefixes: root })])
  expect(actions(advice).sort()).toEqual(['add-ttl', 'hash-instead-of-keys'])
  expect(advice.find(({ action }) => action === 'add-ttl')!.commands[0]).toMatch(/rand\(\) \* 8640/)
  expect(advice.find(({ action }) => action === 'hash-instead-of-keys')!.commands[0]).toBe('HSET user:h3 232 value')
  // A scan does not know TTLs, so nothing is said about them.
  const { keysWithTtl: _unknown, ...unknown } = leaf
  expect(actions(advise([finding({ prefixes: { ...root, children: [unknown] } })]))).toEqual(['hash-instead-of-keys'])
})

test('the fields of an entity become one hash, and nothing is advised that would overwrite one with another', () => {
  const leaf = {
    prefix: 'user:<n>:',
    keys: 20_000,
    bytes: 1e6,
    elements: 20_000,
    fields: ['age', 'name'],
    children: [],
  }
  const root = { ...leaf, prefix: '', fields: undefined, children: [leaf] }
  const advice = advise([finding({ prefixes: root as never })])
  expect(actions(advice)).toEqual(['fields-as-hash'])
  expect(advice[0]!.commands).toEqual(['HSET user:1 age value name value', 'HMGET user:1 age name'])
  // After a number there may be endlessly many names: then they are not fields.
  const { fields: _none, ...names } = leaf
  expect(advise([finding({ prefixes: { ...root, children: [names] } as never })])).toEqual([])
})

test('a few unusual keys do not suppress the advice for a prefix', () => {
  const leaf = { prefix: 'seen:<n>', keys: 20_000, bytes: 1e6, elements: 20_500, keysWithTtl: 9, children: [] }
  const root = { ...leaf, prefix: '', children: [leaf] }
  const advice = advise([finding({ prefixes: root })])
  expect(actions(advice).sort()).toEqual(['add-ttl', 'hash-instead-of-keys'])
  expect(advice.find(({ action }) => action === 'add-ttl')!.problem).toMatch(/only 9 expire/)
  const many = { ...leaf, elements: 60_000, keysWithTtl: 15_000 }
  expect(advise([finding({ prefixes: { ...root, children: [many] } })])).toEqual([])
})

test('a skewed node is distinguished from a skewed slot', () => {
  const nodes = [
    { node: 'a', slots: 8192, operationsPerSecond: 900, share: 0.9, skew: 1.8 },
    { node: 'b', slots: 8192, operationsPerSecond: 100, share: 0.1, skew: 0.2 },
  ]
  const bySlots = advise([finding({ kind: 'slots', nodes, slots: [{ slot: 7, node: 'a', share: 0.8 }] })])
  expect(bySlots).toMatchObject([{ action: 'rebalance', subject: 'a', remedy: expect.stringMatching(/slot 7 alone/) }])
  expect(advise([finding({ kind: 'slots', nodes })])[0]!.remedy).toMatch(/move some of its slots/)
})
