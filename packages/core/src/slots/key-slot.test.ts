import { expect, test } from 'vitest'
import { keySlot, keySlotOfBytes } from './key-slot.ts'

test('slots equal those that CLUSTER KEYSLOT of a real server returns', () => {
  const known: Record<string, number> = { '': 0, foo: 12182, bar: 5061, '123456789': 12739, 'a{foo}b': 12182 }
  for (const [key, slot] of Object.entries(known)) expect(keySlot(key), key).toBe(slot)
})

test('only the first non-empty tag counts', () => {
  expect(keySlot('{user1000}.following')).toBe(keySlot('{user1000}.followers'))
  expect(keySlot('foo{}{bar}')).not.toBe(keySlot('bar'))
  expect(keySlot('foo{{bar}}zap')).toBe(keySlot('{bar'))
  expect(keySlot('foo{bar}{zap}')).toBe(keySlot('bar'))
})

test('a key inside a larger buffer does not see the bytes around it', () => {
  const buffer = Buffer.from('}}foo{bar}}')
  expect(keySlotOfBytes(buffer, 2, 5)).toBe(keySlot('foo'))
  expect(keySlotOfBytes(buffer, 2, 9)).toBe(keySlot('foo{bar'))
})
