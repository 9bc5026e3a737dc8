import { FakeClock } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import type { PrewarmJob } from '../prewarm/prewarm-job.ts'
import { MemoryStore } from '../store/memory-store.ts'
import { Forecaster } from './forecaster.ts'

const minuteMs = 60_000
const hourMs = 60 * minuteMs
const dayMs = 24 * hourMs
/** A Monday. */
const monday = Date.UTC(2026, 8, 28)

/** A forecaster on a clock that the test moves minute by minute, and the jobs that it made. */
async function open(store = new MemoryStore(), wallClock = new FakeClock(monday)) {
  const jobs: PrewarmJob[] = []
  let burning: readonly string[] = []
  const forecaster = new Forecaster({
    store: {
      records: (kind) => store.records(kind),
      saveRecord: (kind, name, text) => store.saveRecord(kind, name, text),
      saveJob(job) {
        jobs.push(job)
        return Promise.resolve(true)
      },
    },
    runtime: { wallClock },
    burning: () => burning.map((key) => ({ redisClusterId: 'main', key })),
    prefixOf: (key) => key,
    warm: () => {},
  })
  await forecaster.restore()
  function until(at: number): void {
    while (wallClock.now() < at) {
      wallClock.step(Math.min(minuteMs, at - wallClock.now()))
      forecaster.tick(wallClock.now())
    }
  }
  /** A key burns for five minutes from a time on. */
  function burn(at: number, key = 'banner'): void {
    until(at - minuteMs)
    burning = [key]
    until(at + 4 * minuteMs)
    burning = []
  }
  return { forecaster, store, wallClock, jobs, until, burn }
}

const settings = { mode: 'do', leadMs: 2 * minuteMs, timeZone: 'UTC' } as const

test('a change of the time zone forgets what was learnt for good, also after a restart', async () => {
  const { forecaster, store, wallClock, burn } = await open()
  await forecaster.saveSettings(settings)
  for (let day = 0; day < 4; day++) burn(monday + day * dayMs + 10 * hourMs)
  await forecaster.keep()
  expect(forecaster.view().recurrences).toHaveLength(1)
  const old = await store.records('forecast')
  await forecaster.saveSettings({ ...settings, timeZone: 'Asia/Shanghai' })
  await forecaster.keep()
  expect(await store.records('forecast')).toEqual(new Map())
  // A hub that was killed in between, or did not know yet, left the old ones there.
  for (const [name, text] of old) await store.saveRecord('forecast', name, text)
  const after = await open(store, wallClock)
  expect(after.forecaster.settings.timeZone).toBe('Asia/Shanghai')
  expect(after.forecaster.view().recurrences).toEqual([])
  await after.forecaster.keep()
  expect(await store.records('forecast')).toEqual(new Map())
})

test('two times of a key within one hour are both warmed', async () => {
  const { forecaster, jobs, until, burn } = await open()
  await forecaster.saveSettings(settings)
  for (let day = 0; day < 5; day++) {
    burn(monday + day * dayMs + 9 * hourMs + 35 * minuteMs)
    burn(monday + day * dayMs + 10 * hourMs + 20 * minuteMs)
  }
  jobs.length = 0
  until(monday + 5 * dayMs + 12 * hourMs)
  expect(jobs.map(({ at }) => Math.round((at - monday - 5 * dayMs) / minuteMs))).toEqual([
    9 * 60 + 35 - 7,
    10 * 60 + 20 - 7,
  ])
  expect(new Set(jobs.map(({ id }) => id)).size).toBe(2)
})

test('what began before its warm-up does not count as warm in time', async () => {
  const { forecaster, until, burn } = await open()
  await forecaster.saveSettings(settings)
  for (let day = 0; day < 8; day++) burn(monday + day * dayMs + 10 * hourMs)
  until(monday + 7 * dayMs + 12 * hourMs)
  const { warmed, inTime } = forecaster.view()
  expect([warmed, inTime]).toEqual([5, 5])
  // Its job is made by then, but it would begin at 9:53.
  burn(monday + 8 * dayMs + 10 * hourMs - 10 * minuteMs)
  until(monday + 8 * dayMs + 12 * hourMs)
  expect(forecaster.view()).toMatchObject({ warmed: 6, inTime: 5 })
})
