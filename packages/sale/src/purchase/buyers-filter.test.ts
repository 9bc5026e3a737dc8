import { expect, test } from 'vitest'
import { BuyersFilter } from './buyers-filter.ts'

test('every buyer is recognised, and few others are mistaken for buyers', () => {
  const filter = new BuyersFilter(10_000)
  for (let index = 0; index < 10_000; index++) filter.add(`user-${index}`)
  let known = 0
  let strangers = 0
  for (let index = 0; index < 10_000; index++) {
    if (filter.mayHold(`user-${index}`)) known++
    if (filter.mayHold(`stranger-${index}`)) strangers++
  }
  expect(known).toBe(10_000)
  expect(strangers).toBeLessThan(100)
})

test('an empty one recognises nobody', () => {
  expect(new BuyersFilter(0).mayHold('ann')).toBe(false)
})
