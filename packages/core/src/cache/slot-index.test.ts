import { scale } from '@firebreak/testkit'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { SlotIndex } from './slot-index.ts'
import { none } from './slot-lists.ts'

const capacity = 20
const key = fc.oneof(
  fc.constantFrom('', 'a', 'b', 'ab', 'ba', 'žluť', '\u0000'),
  // Around the length from which V8's hash is used.
  fc.integer({ min: 22, max: 27 }).map((length) => 'x'.repeat(length)),
  fc.nat(40).map((number) => `key:${number}`),
  fc.nat(10).map((number) => `a key that is longer than most:${number}`),
)

test('finds what a Map finds, whatever was added and removed', () => {
  const step = fc.record({ action: fc.constantFrom('find', 'add', 'add', 'remove', 'clear'), key })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 200, size: 'max' }), (steps) => {
      const index = new SlotIndex(capacity)
      let model = new Map<string, number>()
      let free = Array.from({ length: capacity }, (_, slot) => slot)
      for (const { action, key: name } of steps) {
        const known = model.get(name)
        expect(index.find(name)).toBe(known ?? none)
        if (action === 'add' && known === undefined && free.length > 0) {
          const slot = free.pop()!
          index.add(name, slot)
          model.set(name, slot)
          expect(index.keyOf(slot)).toBe(name)
        } else if (action === 'remove' && known !== undefined) {
          index.remove(known)
          model.delete(name)
          free.push(known)
        } else if (action === 'clear' && steps.length % 5 === 0) {
          index.clear()
          model = new Map()
          free = Array.from({ length: capacity }, (_, slot) => slot)
        }
        expect(index.size).toBe(model.size)
        expect(index.find(name)).toBe(model.get(name) ?? none)
      }
      expect([...index.keys()].sort()).toEqual([...model.keys()].sort())
    }),
    { numRuns: scale(60, 1000) },
  )
})

test('a key that was added without a lookup before is found', () => {
  const index = new SlotIndex(4)
  expect(index.find('missing')).toBe(none)
  index.add('other', 0)
  index.add('missing', 1)
  expect([index.find('other'), index.find('missing')]).toEqual([0, 1])
})
