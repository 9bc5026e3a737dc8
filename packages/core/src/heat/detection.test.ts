import { loadTrace, replayDetection, scale } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const trace = loadTrace('orm-night')

test.each([1, 20, 200, 1000])(
  'on a trace split over %d hosts, all hot keys are found and no cold one is',
  async (hosts) => {
    const result = await replayDetection(trace, { hosts, seconds: scale(8, 50) })
    expect(result.wanted).toBeGreaterThan(100)
    expect(result.meanHotKeys).toBeGreaterThan(50)
    expect(result.recall).toBe(1)
    expect(result.falseAlarms).toBe(0)
    if (hosts === 1000) expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(20)
  },
)

test('with a low threshold, where the factor may not rise, rows stay within bounds by sampling what is hot more thinly', async () => {
  // Of the recorded traces this one is the flattest: 350 keys are hot from some 131 accesses in 5 s on.
  const result = await replayDetection(loadTrace('web07'), { hosts: 1000, seconds: scale(8, 30) })
  expect(result.recall).toBe(1)
  expect(result.falseAlarms).toBe(0)
  expect(result.rowsPerHostAndFlush).toBeLessThanOrEqual(20)
})

test('a factor beyond what the threshold bears is what costs accuracy', async () => {
  // One row in ten accesses, far past 1 + T / 96: the replay must be able to see the harm.
  const honest = await replayDetection(trace, { hosts: 1000, seconds: 8 })
  const greedy = await replayDetection(trace, { hosts: 1000, seconds: 8, factor: 40 })
  expect(honest.recall).toBe(1)
  expect(greedy.rowsPerHostAndFlush).toBeLessThan(honest.rowsPerHostAndFlush / 5)
  expect(greedy.recall === 1 && greedy.falseAlarms === 0).toBe(false)
})
