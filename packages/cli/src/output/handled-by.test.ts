import { expect, test } from 'vitest'
import { handledBy } from './handled-by.ts'

const strategy = { strategy: 'Observe' } as const

test('a strategy that nobody carries out is not what handles a key', () => {
  expect(handledBy({ strategy })).toBe('Observe')
  expect(handledBy({ strategy, carrier: 'sensor' })).toBe('Observe')
  expect(handledBy({ strategy, carrier: 'reports' })).toBe('reports only')
  expect(handledBy({ strategy: null, carrier: null })).toBe(undefined)
})
