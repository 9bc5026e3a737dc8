import fc from 'fast-check'
import { expect, test } from 'vitest'
import { processName } from './process-name.ts'

test('ordinary names are joined as they are', () => {
  expect(processName('shop', 'host-1', 'i/1%')).toBe('shop/host-1/i/1%')
})

test('two processes have one name only where all their names are the same', () => {
  const name = fc.string({ unit: fc.constantFrom('a', '/', '%', '2', 'F', '5'), maxLength: 6 })
  const names = fc.tuple(name, name, name)
  fc.assert(
    fc.property(names, names, (one, other) => {
      expect(processName(...one) === processName(...other)).toBe(one.join('\n') === other.join('\n'))
    }),
    { numRuns: 5000 },
  )
  expect(processName('shop', 'api/h', 'i')).not.toBe(processName('shop/api', 'h', 'i'))
})
