import { Forecaster, MemoryStore } from '@firebreak/hub'
import { FakeClock } from '@firebreak/testkit'
import { type GeneratedWeeks, minuteMs, prefixOf } from './generated-weeks.ts'

/** A key that is kept warm from a time on and up to another. */
export interface WarmUp {
  readonly key: string
  readonly from: number
  readonly to: number
}

/** How often the forecaster looks; a hub does each second. */
const stepMs = 2 * minuteMs

export interface Foretold {
  /** Before their time, by patterns. */
  readonly planned: readonly WarmUp[]
  /** Because another key of their prefix had begun to burn. */
  readonly following: readonly WarmUp[]
}

/** Plays weeks to a forecaster; gives what it had warmed. */
export async function foretell({ from, to, burns }: GeneratedWeeks): Promise<Foretold> {
  const wallClock = new FakeClock(from)
  const [planned, following]: [WarmUp[], WarmUp[]] = [[], []]
  const store = new MemoryStore()
  let burning: { readonly key: string; readonly to: number }[] = []
  const forecaster = new Forecaster({
    store: {
      records: (kind) => store.records(kind),
      saveRecord: () => Promise.resolve(),
      saveJob({ keys, at, forMs }) {
        for (const key of keys) planned.push({ key, from: at, to: at + forMs })
        return Promise.resolve(true)
      },
    },
    runtime: { wallClock },
    burning: () => burning.map(({ key }) => ({ redisClusterId: 'main', key })),
    prefixOf,
    warm({ keys, at, forMs }) {
      for (const key of keys) following.push({ key, from: at, to: at + forMs })
    },
  })
  await forecaster.saveSettings({ mode: 'do', leadMs: 2 * minuteMs, timeZone: 'Europe/Berlin' })
  let next = 0
  for (let now = from; now < to; now += stepMs) {
    wallClock.step(now - wallClock.now())
    burning = burning.filter((burn) => burn.to > now)
    while (next < burns.length && burns[next]!.from <= now) burning.push(burns[next++]!)
    forecaster.tick(now)
  }
  return { planned, following }
}
