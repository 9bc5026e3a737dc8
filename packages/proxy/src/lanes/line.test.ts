import { expect, test } from 'vitest'
import { Line } from './line.ts'

test('a queue returns its items in the order in which they arrived, however many wait', () => {
  const line = new Line<number>()
  expect([line.length, line.first, line.last]).toEqual([0, undefined, undefined])
  let next = 0
  let gone = 0
  for (let round = 0; round < 5; round++) {
    for (let count = 0; count < 3000; count++) line.push(next++)
    for (let count = 0; count < 2500; count++) {
      expect(line.first).toBe(gone++)
      line.shift()
    }
    expect([line.length, line.first, line.last]).toEqual([next - gone, gone, next - 1])
  }
  while (line.length > 0) line.shift()
  expect([line.first, line.last]).toEqual([undefined, undefined])
})
