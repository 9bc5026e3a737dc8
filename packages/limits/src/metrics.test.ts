import { expect, test } from 'vitest'
import { localLimiter } from './local/local-limiter.ts'
import { limiterFamilies, limiterMetrics } from './metrics.ts'
import { fixedWindow } from './spec/specs.ts'

test('each limit has a series for each outcome', () => {
  const limiter = localLimiter(fixedWindow({ limit: 1, windowMs: 3_600_000 }), { name: 'a "b"' })
  limiter.take('k')
  limiter.take('k')
  limiter.take('k')
  expect(limiterFamilies([limiter])[0]?.points).toContainEqual({
    labels: { limit: 'a "b"', outcome: 'denied' },
    value: 2,
  })
  const text = limiterMetrics([limiter])
  expect(text).toContain('firebreak_limit_calls_total{limit="a \\"b\\"",outcome="allowed"} 1\n')
  expect(text).toContain('firebreak_limit_calls_total{limit="a \\"b\\"",outcome="denied"} 2\n')
})
