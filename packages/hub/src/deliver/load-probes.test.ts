import type { NodeLoad, ProbePayload } from '@firebreak/core'
import { expect, test } from 'vitest'
import { LoadProbes, type ProbingSensor } from './load-probes.ts'

type AskedSensor = ProbingSensor & { readonly asked: ProbePayload[] }

function sensor(hostId: string, ...clusters: string[]): AskedSensor {
  const asked: ProbePayload[] = []
  return { hostId, measurable: new Set(clusters), asked, probe: (payload) => void asked.push(payload) }
}

function probes(isWanted = true) {
  const autopilot = { isWanted }
  return { autopilot, chosen: new LoadProbes(autopilot) }
}

const load = (redisClusterId: string): NodeLoad => ({ redisClusterId, node: 'n', spanMs: 1000, roundTripMs: 1 })
const measures = ({ asked }: AskedSensor) => asked.at(-1)?.redisClusterIds ?? []

test('each cluster is measured by three sensors, of different hosts if it can be, and nobody is asked without need', () => {
  const { chosen, autopilot } = probes(false)
  const [a, b, c, d, e] = [
    sensor('h1', 'one'),
    sensor('h1', 'one', 'two'),
    sensor('h2', 'one'),
    sensor('h3', 'one'),
    sensor('h4', 'one'),
  ]
  const all = [a, b, c, d, e]
  chosen.ask(all, 0)
  expect(all.flatMap(({ asked }) => asked)).toEqual([])
  autopilot.isWanted = true
  chosen.ask(all, 1000)
  expect(all.map(measures)).toEqual([['one'], ['two'], ['one'], ['one'], []])
})

test('what nobody asked for is not taken', () => {
  const { chosen, autopilot } = probes()
  const [asked, other] = [sensor('h1', 'one'), sensor('h2', 'two')]
  chosen.ask([asked], 0)
  expect(chosen.take(asked, [load('one'), load('two')], 100)).toEqual([load('one')])
  expect(chosen.take(other, [load('one')], 200)).toEqual([])
  autopilot.isWanted = false
  chosen.ask([asked], 1000)
  expect(chosen.take(asked, [load('one')], 1100)).toEqual([])
})

test('who measures is asked again before its time is over, and told when it is no longer wanted', () => {
  const { chosen, autopilot } = probes()
  const only = sensor('h1', 'one')
  for (let second = 0; second < 7; second++) {
    chosen.ask([only], second * 1000)
    chosen.take(only, [load('one')], second * 1000)
  }
  expect(only.asked.length).toBe(3)
  autopilot.isWanted = false
  chosen.ask([only], 8000)
  expect(measures(only)).toEqual([])
})

test('a sensor that falls silent or leaves is replaced', () => {
  const { chosen } = probes()
  const all = ['h1', 'h2', 'h3', 'h4'].map((host) => sensor(host, 'one'))
  const [silent, ...others] = all as [AskedSensor, AskedSensor, AskedSensor, AskedSensor]
  for (let second = 0; second < 6; second++) {
    chosen.ask(all, second * 1000)
    for (const one of others) chosen.take(one, [load('one')], second * 1000)
  }
  expect(all.map(measures)).toEqual([[], ['one'], ['one'], ['one']])
  chosen.ask([silent], 7000)
  expect(measures(silent)).toEqual(['one'])
  // Silent still, and the only one.
  for (let second = 8; second < 20; second++) chosen.ask([silent], second * 1000)
  expect(measures(silent)).toEqual(['one'])
})
