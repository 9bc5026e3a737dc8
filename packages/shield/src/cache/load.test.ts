import { expect, test } from 'vitest'
import { Loads } from './load.ts'

test('readers share a load, but none waits for one that began before their guard would have', () => {
  const loads = new Loads()
  const told: string[] = []
  const first = loads.join('GET', () => told.push('first'), 1000, 100)!
  expect(loads.join('GET', () => told.push('second'), 1100, 100)).toBeUndefined()
  const later = loads.join('GET', () => told.push('third'), 1101, 100)!
  expect(later).not.toBe(first)
  expect([first.isPoisoned, later.isPoisoned]).toEqual([true, false])
  expect(loads.join('GET', () => told.push('fourth'), 1150, 100)).toBeUndefined()
  loads.end('GET', first, undefined)
  expect(told).toEqual(['first', 'second'])
  loads.end('GET', later, undefined)
  expect(told).toEqual(['first', 'second', 'third', 'fourth'])
})
