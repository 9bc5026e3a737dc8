import { keyName, VarintReader } from '@firebreak/core'
import { testRule } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { AccessLog } from './access-log.ts'

function logOf(redactKey?: (key: string) => string): AccessLog {
  return new AccessLog({
    redisClusterId: 'main',
    serviceId: 'shop',
    maxKeys: 1000,
    redactKey,
    seed: 2 ** 47 + 12_345,
    onBurst: () => {},
  })
}

/** Counts reads of keys by their bytes, ends the interval at `now`, and returns its contents. */
function interval(log: AccessLog, now: number, reads: Record<string, number>, takesPieces = true) {
  for (const [key, count] of Object.entries(reads)) log.byBytes.addReads(Buffer.from(key), count)
  const keys: Record<string, number> = {}
  const crossings: string[] = []
  let inPieces = 0
  const { count } = log.drain(
    {
      takesPieces,
      byName: (key, keyCount) => {
        keys[key] = keyCount
      },
      byBytes: (bytes, start, end, keyCount) => {
        keys[keyName(bytes.subarray(start, end))] = keyCount
      },
      byPiece: (bytes, start, end, pieceKeys) => {
        const reader = new VarintReader(bytes, start, end)
        for (let nth = 0; nth < pieceKeys; nth++) keys[keyName(reader.view())] = reader.varint() / 2
        inPieces += pieceKeys
      },
      onCrossing: (name) => crossings.push(name),
    },
    now,
  )
  return { keys, count, crossings, inPieces }
}

const many = Object.fromEntries(Array.from({ length: 5000 }, (_, index) => [`key ${index}`, 1]))
const cold = Object.fromEntries(Array.from({ length: 50 }, (_, index) => [`cold ${index}`, 1]))

test('cold keys are reported in pieces, and all are in the total', () => {
  const log = logOf()
  interval(log, 100, cold)
  const { keys, count, inPieces } = interval(log, 200, cold)
  expect([count, inPieces]).toEqual([50, 50])
  expect(keys).toEqual(cold)
})

test('nothing is reported in pieces if each key has to be inspected', () => {
  const redacted = logOf((key) => `<${key}>`)
  const plain = logOf()
  for (const now of [100, 200]) {
    const { keys, inPieces } = interval(redacted, now, { a: 1 })
    expect([keys, inPieces]).toEqual([{ '<a>': 1 }, 0])
    expect(interval(plain, now, cold, false).inPieces).toBe(0)
  }
})

test('a key that creeps towards its threshold is watched among cold ones', () => {
  const log = logOf()
  log.setRules([testRule(100, { windowMs: 1000 })])
  interval(log, 100, { ...cold, creeping: 1 })
  // With a twentieth of the threshold in one interval it becomes a candidate; after that fewer count too.
  expect(interval(log, 200, { ...cold, creeping: 60 }).crossings).toEqual([])
  for (let now = 300; now <= 500; now += 100) {
    const { crossings, inPieces } = interval(log, now, { ...cold, creeping: 4 })
    expect([crossings, inPieces]).toEqual([[], 50])
  }
  expect(interval(log, 600, { ...cold, creeping: 30 }).crossings).toEqual(['creeping'])
})

test('a key is still watched after the table was rebuilt for many others', () => {
  const log = logOf()
  log.setRules([testRule(100, { windowMs: 1000 })])
  interval(log, 100, { creeping: 80 })
  const others = Object.fromEntries(Array.from({ length: 9000 }, (_, index) => [`key ${index}`, 1]))
  interval(log, 200, { ...others, creeping: 4 })
  interval(log, 300, { ...others, creeping: 4 })
  interval(log, 400, { ...others, creeping: 4 })
  interval(log, 500, { ...others, creeping: 4 })
  expect(interval(log, 600, { ...others, creeping: 4 }).crossings).toEqual(['creeping'])
})

test('with very many cold keys half are reported in turn, with all their counts, and warm ones at once', () => {
  const log = logOf()
  log.setRules([testRule(200, { windowMs: 1000 })])
  const sums = new Map<string, number>()
  const told = [100, 200, 300, 400, 500, 600, 700, 800].map((now) => {
    const { keys, inPieces } = interval(log, now, now < 800 ? { ...many, 'warm 0': 20, 'warm 4999': 15 } : {})
    for (const [key, count] of Object.entries(keys)) sums.set(key, (sums.get(key) ?? 0) + count)
    return { inPieces, warm: [keys['warm 0'], keys['warm 4999']] }
  })
  // Until the table knows its keys, and while it was too small for them, it hands over all of them.
  const inTurn = told.slice(4, 7)
  for (const { inPieces, warm } of inTurn) {
    expect(warm).toEqual([20, 15])
    expect([2499, 2500, 2501]).toContain(inPieces)
  }
  expect(sums.size).toBe(5002)
  for (const [key, count] of sums)
    expect([key, count]).toEqual([key, key === 'warm 0' ? 140 : key === 'warm 4999' ? 105 : 7])
})

test('held-back counts make a report due, and all of them are reported when the counts are the last', () => {
  const log = logOf()
  for (const now of [100, 200, 300, 400]) interval(log, now, many)
  const held = log.countSoFar
  expect([2500, 2501]).toContain(held)
  expect(interval(log, 500, many, false).count).toBe(held + 5000)
  expect(log.countSoFar).toBe(0)
})
