import { expect, test } from 'vitest'
import { OwnCopies } from './own-copies.ts'

const copy = Buffer.from('k_1')

test('a copy removed while KEYS is on its way stays hidden from that reply, and from no later one', () => {
  const own = new OwnCopies()
  own.add(copy)
  const before = own.listing()
  own.removed(copy)
  const after = own.listing()
  expect([before(copy), after(copy), own.has(copy)]).toEqual([true, false, false])
})

test('a name that was never a copy is shown although another copy was removed', () => {
  const own = new OwnCopies()
  own.add(copy)
  const listing = own.listing()
  own.removed(copy)
  // The server has said that this one belongs to the application.
  own.removed(Buffer.from('k_2'))
  expect(listing(Buffer.from('k_2'))).toBe(false)
})

test('removed copies are remembered by a bounded number', () => {
  const own = new OwnCopies()
  const listing = own.listing()
  const names = Array.from({ length: 20_000 }, (_, index) => Buffer.from(`k_${index}`))
  for (const name of names) {
    own.add(name)
    own.removed(name)
  }
  expect([listing(names[0]!), listing(names.at(-1)!)]).toEqual([false, true])
})
