import { defaultLocalCache } from '@firebreak/core'
import type { StrategyTemplate } from '@firebreak/core/rules'
import { expect, test } from 'vitest'
import { type KeyLoad, weighStrategies } from './weigh-strategies.ts'

const copies: StrategyTemplate = { strategy: 'RedundantKeys', copyCount: 6, template: '{key}_{n}', ttlJitterMs: 0 }
const limit: StrategyTemplate = {
  strategy: 'RateLimit',
  algorithm: 'tokenBucket',
  limit: 100,
  windowMs: 1000,
  onLimit: 'reject',
  scope: 'process',
}
const observe: StrategyTemplate = { strategy: 'Observe' }
const all = [defaultLocalCache, copies, limit, observe]
const load = (changes: Partial<KeyLoad> = {}): KeyLoad => ({
  readsPerSecond: 10_000,
  writesPerSecond: 0,
  bytesPerAccess: 200,
  processCount: 20,
  nodeCount: 3,
  maxStalenessMs: undefined,
  ...changes,
})

test.each<[string, readonly StrategyTemplate[], Partial<KeyLoad>, string]>([
  ['a product page, read only', all, {}, 'LocalCache: 10,000 reads/s against 0 reloads/s after writes'],
  [
    'a page that changes now and then',
    all,
    { writesPerSecond: 10 },
    'LocalCache: 10,000 reads/s against 200 reloads/s after writes',
  ],
  [
    'a price that changes often, in a large fleet',
    all,
    { writesPerSecond: 50, processCount: 4000 },
    'RedundantKeys: 10,000 reads/s over 6 copies on 3 nodes; not LocalCache: 50 writes/s to 4,000 processes are 200,000 reloads/s for 10,000 reads/s',
  ],
  [
    'the same on one node',
    all,
    { writesPerSecond: 50, processCount: 4000, nodeCount: 1 },
    'RateLimit: only fewer accesses help; not LocalCache: 50 writes/s to 4,000 processes are 200,000 reloads/s for 10,000 reads/s; not RedundantKeys: there is only one node, which would serve the copies too',
  ],
  [
    'a video of 40 MB',
    all,
    { bytesPerAccess: 40_000_000 },
    'RedundantKeys: 10,000 reads/s over 6 copies on 3 nodes; not LocalCache: a value of 40 MB does not fit in a cache of 67.1 MB',
  ],
  [
    'a balance that may never be stale',
    all,
    { maxStalenessMs: 0 },
    'RedundantKeys: 10,000 reads/s over 6 copies on 3 nodes; not LocalCache: the rule allows no staleness at all',
  ],
  [
    'a counter',
    all,
    { readsPerSecond: 50, writesPerSecond: 5000 },
    'RateLimit: 5,000 writes/s: only fewer writes help (a counter can be split with splitCounter); not LocalCache: 5,000 writes/s to 20 processes are 100,000 reloads/s for 50 reads/s; not RedundantKeys: 5,000 writes/s to 6 copies cost more than 50 reads/s spread',
  ],
  [
    'a counter whose increments may go together',
    [...all, { strategy: 'Combine', maxCombined: 1024 }],
    { readsPerSecond: 50, writesPerSecond: 5000 },
    'Combine: 5,000 writes/s; the increments among them go out together; not LocalCache: 5,000 writes/s to 20 processes are 100,000 reloads/s for 50 reads/s; not RedundantKeys: 5,000 writes/s to 6 copies cost more than 50 reads/s spread',
  ],
  [
    'a counter that may not be limited',
    [defaultLocalCache, copies, observe],
    { readsPerSecond: 50, writesPerSecond: 5000 },
    'Observe: nothing that the rule allows would help; not LocalCache: 5,000 writes/s to 20 processes are 100,000 reloads/s for 50 reads/s; not RedundantKeys: 5,000 writes/s to 6 copies cost more than 50 reads/s spread',
  ],
  ['a rule with one strategy', [copies], { nodeCount: 1 }, 'RedundantKeys: the rule allows nothing else'],
  ['copies or a limit, read only', [copies, limit], {}, 'RedundantKeys: 10,000 reads/s over 6 copies on 3 nodes'],
  [
    'copies or a limit, written often',
    [copies, limit],
    { writesPerSecond: 2000 },
    'RateLimit: only fewer accesses help; not RedundantKeys: 2,000 writes/s to 6 copies cost more than 10,000 reads/s spread',
  ],
  [
    'memory or copies, and neither helps',
    [copies, defaultLocalCache],
    { writesPerSecond: 9000, processCount: 100 },
    "RedundantKeys, the rule's first choice: not LocalCache: 9,000 writes/s to 100 processes are 900,000 reloads/s for 10,000 reads/s; not RedundantKeys: 9,000 writes/s to 6 copies cost more than 10,000 reads/s spread",
  ],
])('%s', (_, allowed, changes, sentence) => {
  const { template, why } = weighStrategies(allowed, load(changes))
  expect(why).toBe(sentence)
  expect(why.startsWith(template.strategy)).toBe(true)
})
