import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { WatchLoop } from './watch-loop.ts'

/** A centre that never waits for a change: every round reads and returns. */
function follow(clock: FakeClock) {
  const texts: (string | undefined)[] = []
  const centre = { text: '1', reads: 0 }
  const loop = new WatchLoop({ onText: (text) => texts.push(text) }, fakeRuntime(1, clock), async ({ deliver }) => {
    if (++centre.reads > 1000) throw new Error('it is flooded')
    await new Promise((resolve) => setImmediate(resolve))
    deliver(centre.text)
  })
  return { texts, centre, loop }
}

test('a centre that answers at once instead of waiting is polled about once a second, and its changes are reported', async () => {
  const clock = new FakeClock()
  const { texts, centre, loop } = follow(clock)
  await clock.advanceAsync(20_000, 10)
  expect(centre.reads).toBeGreaterThan(15)
  expect(centre.reads).toBeLessThan(45)
  expect(loop.isLive).toBe(true)
  centre.text = '2'
  await clock.advanceAsync(1100, 10)
  expect(texts).toEqual(['1', '2'])
  loop.close()
  const { reads } = centre
  await clock.advanceAsync(5000, 10)
  expect(centre.reads).toBe(reads)
})

test('changes that follow each other are reported without a pause', async () => {
  const clock = new FakeClock()
  const { texts, centre, loop } = follow(clock)
  for (let text = 2; text <= 10; text++) {
    await new Promise((resolve) => setImmediate(resolve))
    centre.text = String(text)
  }
  await clock.advanceAsync(1100, 10)
  expect(texts.at(-1)).toBe('10')
  loop.close()
})
