import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { HubCore } from '../hub-core.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { FinderRuns } from './finder-runs.ts'
import { parseFinderPlans, ScheduledFinders } from './scheduled-finders.ts'

const longestDelayMs = 2 ** 31 - 1

/** A clock whose timers end early where they are longer than a process's may be, and that does not count by the second. */
class CutClock extends FakeClock {
  override setTimeout(callback: () => void, delayMs: number) {
    return super.setTimeout(callback, Math.min(delayMs, longestDelayMs))
  }
  override setInterval() {
    return { cancel: () => {} }
  }
}

test('a look once a month comes on its day, and on no other', async () => {
  const clock = new CutClock(Date.UTC(2026, 0, 2))
  const runtime = { clock, wallClock: clock, timers: clock, random: () => 0.5, newId: () => 'run' }
  const core = await HubCore.open(new MemoryStore(), { runtime })
  const servers = [{ redisClusterId: 'main', url: 'redis://127.0.0.1:1' }]
  const looks: string[] = []
  const search = async () => {
    looks.push(new Date(clock.now()).toISOString())
    return Promise.reject(new Error('nothing to look at'))
  }
  const finders = new FinderRuns({ servers, runtime, searches: { hot: search, big: search } })
  const plans = parseFinderPlans(['main hot 0 3 1 * * in UTC'], servers)
  const scheduled = new ScheduledFinders({ plans, finders, core })
  scheduled.start()
  await clock.advanceAsync(100 * 86_400_000, 43_200_000)
  expect(looks).toEqual(['2026-02-01T03:00:00.000Z', '2026-03-01T03:00:00.000Z', '2026-04-01T03:00:00.000Z'])
  scheduled.close()
  await core.close()
})
