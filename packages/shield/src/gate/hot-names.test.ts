import { defaultLocalCache } from '@firebreak/core'
import { expect, test } from 'vitest'
import { HotNames } from './hot-names.ts'

const handling = { strategy: defaultLocalCache, ruleId: 'r', until: 1, isClaim: false }
const makeNames = () => new HotNames({ hashOf: () => 0, outside: (name) => name, make: () => undefined as never })

test('a name that was not found before is found once it is hot', () => {
  const names = makeNames()
  expect(names.get('k')).toBeUndefined()
  expect(names.get('k')).toBeUndefined()
  const made = names.add('k', handling)
  expect(names.get('k')).toBe(made)
  names.remove(made)
  expect(names.get('k')).toBeUndefined()
})

test('names are found however many there are, and not once they are gone', () => {
  const names = makeNames()
  const count = 5000
  for (let index = 0; index < count; index++) names.add(`k:${index}`, handling)
  for (let index = 0; index < count; index += 2) names.remove(names.get(`k:${index}`)!)
  for (let index = 0; index < count; index++) {
    expect(names.get(`k:${index}`)?.name).toBe(index % 2 === 0 ? undefined : `k:${index}`)
  }
  expect(names.get('other')).toBeUndefined()
  expect(names.size).toBe(count / 2)
})
