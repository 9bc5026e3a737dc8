import type { ProbePayload } from '@firebreak/core'
import { expect, test } from 'vitest'
import { LoadProbes, type ProbingSensor } from './load-probes.ts'

function sensor(...clusters: string[]): ProbingSensor & { readonly asked: ProbePayload[] } {
  const asked: ProbePayload[] = []
  return { measurable: new Set(clusters), asked, probe: (payload) => void asked.push(payload) }
}

function probes(isWanted = true) {
  const measuredAt = new Map<string, number>()
  const loads = { measuredAt: (cluster: string) => measuredAt.get(cluster) ?? Number.NEGATIVE_INFINITY }
  const autopilot = { isWanted, loads }
  return { autopilot, measuredAt, chosen: new LoadProbes(autopilot as never) }
}

test('each cluster is measured by one sensor, and nobody is asked without need', () => {
  const { chosen, autopilot } = probes(false)
  const [a, b, c] = [sensor('one'), sensor('one', 'two'), sensor('two')]
  chosen.ask([a, b, c], 0)
  expect([a, b, c].flatMap(({ asked }) => asked)).toEqual([])
  autopilot.isWanted = true
  chosen.ask([a, b, c], 1000)
  expect(a.asked).toEqual([{ redisClusterIds: ['one'], everyMs: 1000 }])
  expect(b.asked).toEqual([{ redisClusterIds: ['two'], everyMs: 1000 }])
  expect(c.asked).toEqual([])
})

test('who measures is asked again before its time is over, and told when it is no longer wanted', () => {
  const { chosen, autopilot, measuredAt } = probes()
  const only = sensor('one')
  for (let second = 0; second < 7; second++) {
    measuredAt.set('one', second * 1000)
    chosen.ask([only], second * 1000)
  }
  expect(only.asked.length).toBe(3)
  autopilot.isWanted = false
  chosen.ask([only], 8000)
  expect(only.asked.at(-1)).toMatchObject({ redisClusterIds: [] })
})

test('a sensor that falls silent or leaves is replaced', () => {
  const { chosen } = probes()
  const [a, b] = [sensor('one'), sensor('one')]
  for (let second = 0; second < 6; second++) chosen.ask([a, b], second * 1000)
  expect(b.asked).toMatchObject([{ redisClusterIds: ['one'] }])
  expect(a.asked.at(-1)).toMatchObject({ redisClusterIds: [] })
  chosen.ask([a], 7000)
  expect(a.asked.at(-1)).toMatchObject({ redisClusterIds: ['one'] })
})
