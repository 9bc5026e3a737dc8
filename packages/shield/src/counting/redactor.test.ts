import { expect, test } from 'vitest'
import { Redactor } from './redactor.ts'

test('a redacted name can be resolved, for every key that got it', () => {
  const redactor = new Redactor((key) => key.replace(/\d+/, '*'))
  expect(['user:1', 'user:2', 'cart'].map((key) => redactor.outside(key))).toEqual(['user:*', 'user:*', 'cart'])
  expect([...redactor.inside('user:*')]).toEqual(['user:1', 'user:2'])
  expect([...redactor.inside('nobody')]).toEqual([])
})

test('memory is bounded: two generations of names are kept, older ones are learned again', () => {
  const redactor = new Redactor((key) => `#${key}`, 10)
  for (let index = 0; index < 100; index++) redactor.outside(`k${index}`)
  expect([...redactor.inside('#k0')]).toEqual([])
  expect([...redactor.inside('#k99')]).toEqual(['k99'])
  redactor.takeNews()
  redactor.outside('k99')
  expect(redactor.takeNews()).toEqual([])
  redactor.outside('k0')
  expect(redactor.takeNews()).toEqual(['k0'])
  expect([...redactor.inside('#k0')]).toEqual(['k0'])
})
