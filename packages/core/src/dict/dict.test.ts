import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { InvalidOptionError } from '../errors/firebreak-error.ts'
import { Dict, type DictOptions } from './dict.ts'
import { pageBytes } from './key-arena.ts'

/** A dict used with Latin-1 strings, each letter a byte. */
class TextDict extends Dict {
  #args(key: string): [Uint8Array, number, number, number] {
    const bytes = Buffer.from(`<${key}>`, 'latin1')
    return [bytes, 1, bytes.length - 1, this.hash(bytes, 1, bytes.length - 1)]
  }
  at(key: string): number {
    return this.find(...this.#args(key))
  }
  put(key: string): number {
    return this.findOrInsert(...this.#args(key))
  }
  drop(key: string): boolean {
    const index = this.at(key)
    if (index >= 0) this.deleteAt(index)
    return index >= 0
  }
  text(index: number): string {
    return Buffer.from(this.keyAt(index)).toString('latin1')
  }
  *indices(): Generator<number> {
    for (let index = this.next(0); index >= 0; index = this.next(index + 1)) yield index
  }
  all(): string[] {
    return [...this.indices()].map((index) => this.text(index))
  }
}

const makeDict = (options: DictOptions = {}) => new TextDict({ initialBuckets: 4, ...options })

const key = fc.oneof(
  fc.integer({ min: 0, max: 60 }).map((id) => `key:${id}`),
  fc.integer({ min: 0, max: 400 }).map((length) => 'x'.repeat(length)),
)
const operation = fc.tuple(fc.constantFrom('put', 'put', 'drop', 'find', 'rehash'), key)

test('any sequence of operations has the same result as on a Map, payload included', () => {
  fc.assert(
    fc.property(fc.array(operation, { maxLength: 400 }), (operations) => {
      const dict = makeDict({ payloadWords: 2 })
      const model = new Map<string, number>()
      let stamp = 0
      for (const [what, name] of operations) {
        if (what === 'put') {
          const index = dict.put(name)
          expect(dict.wasInserted).toBe(!model.has(name))
          const words = dict.wordsOf(index)
          if (dict.wasInserted) expect(words[dict.payloadAt(index) + 1]).toBe(0)
          words[dict.payloadAt(index) + 1] = ++stamp
          model.set(name, stamp)
        } else if (what === 'drop') {
          expect(dict.drop(name)).toBe(model.delete(name))
        } else if (what === 'rehash') {
          dict.rehash(1)
        } else {
          expect(dict.at(name) >= 0).toBe(model.has(name))
        }
        expect(dict.size).toBe(model.size)
      }
      const found = new Map<string, number>()
      for (const index of dict.indices()) {
        found.set(dict.text(index), dict.wordsOf(index)[dict.payloadAt(index) + 1]!)
      }
      expect(found).toEqual(model)
      for (const name of model.keys()) expect(dict.text(dict.at(name))).toBe(name)
    }),
    { numRuns: scale(200, 3000) },
  )
})

test('it grows and shrinks with its entries in bounded steps, and returns memory', () => {
  const dict = makeDict({ payloadWords: 1 })
  const count = 200_000
  let rehashedOperations = 0
  let highestLoad = 0
  for (let id = 0; id < count; id++) {
    dict.put(`item:${id}`)
    if (dict.isRehashing) rehashedOperations++
    highestLoad = Math.max(highestLoad, dict.size / dict.bucketCount)
  }
  expect(highestLoad).toBeLessThanOrEqual(1)
  // If a table were moved in one operation, hardly any operation would find the dict rehashing.
  expect(rehashedOperations).toBeGreaterThan(count / 20)
  expect(dict.bucketCount).toBe(262_144)
  const fullBytes = dict.bytes
  for (let id = 0; id < count; id++) if (id % 1000 !== 0) dict.drop(`item:${id}`)
  while (dict.rehash(1000));
  expect(dict.size).toBe(200)
  expect(dict.bucketCount).toBeLessThanOrEqual(4096)
  for (let id = 0; id < count; id += 1000) expect(dict.text(dict.at(`item:${id}`))).toBe(`item:${id}`)
  for (let id = 1000; id < count; id += 1000) dict.drop(`item:${id}`)
  expect(fullBytes).toBeGreaterThan(7 * pageBytes)
  expect(dict.bytes).toBeLessThan(3 * pageBytes)
  expect(dict.all()).toEqual(['item:0'])
})

test('an index stays with its key while the table is rehashed around it', () => {
  const dict = makeDict()
  const indices = Array.from({ length: 5000 }, (_, id) => dict.put(`k${id}`))
  expect(new Set(indices).size).toBe(5000)
  expect(Math.max(...indices)).toBe(4999)
  for (let id = 0; id < 5000; id++) expect(dict.at(`k${id}`)).toBe(indices[id])
})

test('an iteration sees entries that stay exactly once, while others come and go and the table is rehashed', () => {
  const dict = makeDict()
  for (let id = 0; id < 20_000; id++) dict.put(`stays:${id}`)
  for (let id = 0; id < 20_000; id++) dict.put(`goes:${id}`)
  const seen = new Map<string, number>()
  let step = 0
  let sawRehashing = false
  for (let index = dict.next(0); index >= 0; index = dict.next(index + 1)) {
    const name = dict.text(index)
    seen.set(name, (seen.get(name) ?? 0) + 1)
    dict.drop(`goes:${step}`)
    dict.put(`comes:${step}`)
    dict.put(`comes-too:${step++}`)
    sawRehashing ||= dict.isRehashing
    if (step > 60_000) break
  }
  expect(sawRehashing).toBe(true)
  for (let id = 0; id < 20_000; id++) expect(seen.get(`stays:${id}`)).toBe(1)
  expect(Math.max(...seen.values())).toBe(1)
})

describe('memory', () => {
  test('the arena does not grow when keys keep coming and going', () => {
    const dict = makeDict()
    const keyOf = (id: number) => `${id}:${'z'.repeat((id * 37) % 700)}`
    const alive = 5000
    for (let id = 0; id < scale(100_000, 1_000_000); id++) {
      dict.put(keyOf(id))
      if (id >= alive) dict.drop(keyOf(id - alive))
    }
    // 5,000 keys of about 360 bytes: 1.8 MB are live, and over 30 MB passed through.
    expect(dict.size).toBe(alive)
    expect(dict.bytes).toBeLessThan(1.5 * 1.9e6 + 5 * pageBytes)
  })

  test('a fragmented page is compacted: a few long-lived keys among short-lived ones do not keep it', () => {
    const dict = makeDict()
    const text = 'y'.repeat(200)
    for (let id = 0; id < 40_000; id++) dict.put(`${id % 100 === 0 ? 'long' : 'short'}:${id}:${text}`)
    expect(dict.bytes).toBeGreaterThan(8e6)
    for (let id = 0; id < 40_000; id++) if (id % 100 !== 0) dict.drop(`short:${id}:${text}`)
    expect(dict.size).toBe(400)
    expect(dict.bytes).toBeLessThan(6e6)
    for (let id = 0; id < 40_000; id += 100) expect(dict.at(`long:${id}:${text}`)).toBeGreaterThanOrEqual(0)
  })

  test('an entry that would exceed maxBytes is refused, and space freed by a deletion is used again', () => {
    const maxBytes = 4 * 2 ** 20
    const dict = makeDict({ maxBytes, payloadWords: 10 })
    let id = 0
    while (dict.put(`key:${id}:${'b'.repeat(100)}`) >= 0) id++
    expect(id).toBeGreaterThan(5000)
    expect(dict.bytes).toBeLessThanOrEqual(maxBytes)
    expect(dict.wasInserted).toBe(false)
    expect(dict.put('key:0:'.padEnd(106, 'b'))).toBeGreaterThanOrEqual(0)
    for (let gone = 0; gone < id; gone++) dict.drop(`key:${gone}:${'b'.repeat(100)}`)
    expect(dict.put('one more')).toBeGreaterThanOrEqual(0)
    expect(dict.bytes).toBeLessThanOrEqual(maxBytes)
  })

  test('a cleared dict is like a new one, and holds no more memory', () => {
    const dict = makeDict({ payloadWords: 1 })
    for (let round = 0; round < 3; round++) {
      for (let id = 0; id < 40_000; id++) {
        const index = dict.put(`k${id}:${round}`)
        expect(index).toBe(id)
        if (dict.wordsOf(index)[dict.payloadAt(index)]! !== 0) throw new Error('a payload of an earlier round')
        dict.wordsOf(index)[dict.payloadAt(index)] = 7
      }
      dict.clear()
      expect([dict.size, dict.next(0), dict.at('k0:0'), dict.bucketCount]).toEqual([0, -1, -1, 4])
      expect(dict.bytes).toBeLessThan(2 * pageBytes)
    }
  })

  test('a key longer than the longest is refused', () => {
    const dict = makeDict()
    expect(dict.put('k'.repeat(65_536))).toBe(0)
    expect(dict.put('k'.repeat(65_537))).toBe(-1)
    expect(dict.text(0).length).toBe(65_536)
  })

  test('a deleted entry leaves no number behind for the next key at its index', () => {
    const dict = makeDict({ payloadWords: 1 })
    const index = dict.put('old')
    dict.put('other')
    dict.wordsOf(index)[dict.payloadAt(index)] = 7
    dict.drop('old')
    expect(dict.put('new')).toBe(index)
    expect(dict.wordsOf(index)[dict.payloadAt(index)]).toBe(0)
  })
})

test('keys whose hashes collide are distinguished by their bytes', () => {
  class OneBucket extends TextDict {
    override hash(): number {
      return 7
    }
  }
  const dict = new OneBucket({ initialBuckets: 4 })
  const names = Array.from({ length: 300 }, (_, id) => 'c'.repeat(id))
  for (const name of names) dict.put(name)
  expect(dict.size).toBe(300)
  for (const name of names.filter((_, id) => id % 3 === 0)) dict.drop(name)
  for (const [id, name] of names.entries()) expect(dict.at(name) >= 0).toBe(id % 3 !== 0)
})

test('an entry picked at random is one in use, and every entry can be', () => {
  const dict = makeDict()
  for (let id = 0; id < 60; id++) dict.put(`k${id}`)
  for (let id = 0; id < 60; id += 2) dict.drop(`k${id}`)
  const picked = new Set<string>()
  for (let random = 0; random < 200_000; random += 37) picked.add(dict.text(dict.pick(random)))
  expect(picked).toEqual(new Set(dict.all()))
  expect(makeDict().pick(5)).toBe(-1)
})

test('options out of range are refused by the constructor', () => {
  expect(() => new Dict({ initialBuckets: 5 })).toThrow(InvalidOptionError)
  expect(() => new Dict({ payloadWords: -1 })).toThrow(InvalidOptionError)
  expect(() => new Dict({ maxBytes: 1000 })).toThrow(InvalidOptionError)
})
