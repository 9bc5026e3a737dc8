import { expect, test } from 'vitest'
import { Trouble } from './trouble.ts'

test('each kind of trouble is reported once until it recovers, and every occurrence is counted', () => {
  const told: string[] = []
  const trouble = new Trouble(({ kind }) => told.push(kind))
  trouble.note('a', 'first')
  trouble.note('a', 'again')
  trouble.note('b', 'other')
  trouble.clear('a')
  trouble.note('a', 'after it was well')
  expect(told).toEqual(['a', 'b', 'a'])
  expect(trouble.count).toBe(4)
})

test('a listener that throws does no harm', () => {
  const trouble = new Trouble(() => {
    throw new Error('the application’s own')
  })
  trouble.note('a', 'x')
  expect(trouble.count).toBe(1)
})
