import { expect, test } from 'vitest'
import { systemRuntime } from './runtime.ts'
import { secretSeed } from './secret-seed.ts'

test('takes the 48 bits before the version of the id, and none of the `random` part', () => {
  expect(secretSeed({ newId: () => 'ffffffff-ffff-4fff-8fff-ffffffffffff' })).toBe(2 ** 48 - 1)
  expect(secretSeed({ newId: () => '00000000-0001-4fff-8fff-ffffffffffff' })).toBe(1)
})

test('each of the bits is on in about half of the seeds', () => {
  const count = 4000
  const seeds = Array.from({ length: count }, () => BigInt(secretSeed(systemRuntime)))
  for (let bit = 0n; bit < 48n; bit++) {
    const share = seeds.filter((seed) => (seed >> bit) & 1n).length / count
    // Nine standard deviations.
    expect(Math.abs(share - 0.5)).toBeLessThan(0.0715)
  }
})
