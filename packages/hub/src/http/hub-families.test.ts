import type { MetricPoint } from '@firebreak/core/metrics'
import { expect, test } from 'vitest'
import { TestCore } from '../testing/test-core.ts'
import { hubFamilies } from './hub-families.ts'

test('the largest share of a hot key is told by what is done about it: observed and shadow are two things', async () => {
  const hub = await TestCore.open([
    { id: 'watch', prefix: 'product:', threshold: 50, strategy: 'Observe' },
    { id: 'trial', prefix: 'cart:', threshold: 50, strategy: 'LocalCache', mode: 'shadow' },
    { id: 'cache', prefix: 'user:', threshold: 50, strategy: 'LocalCache' },
  ])
  hub.keepReporting(3000, { 'product:1': 40, 'product:2': 10, 'cart:1': 20, 'user:1': 20, other: 10 })
  const family = hubFamilies(hub.core, hub.core.views()).find(({ name }) => name.endsWith('hot_key_share'))!
  const points = family.points as readonly MetricPoint[]
  const shares = points.map(({ labels, value }) => [labels['handling'], Math.round(value * 10)])
  expect(Object.fromEntries(shares)).toEqual({ handled: 0, observed: 4, shadow: 2, unhandled: 2 })
  await hub.core.close()
})
