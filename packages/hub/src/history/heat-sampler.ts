import { type HeatLetter, keyText, type StrategyName } from '@firebreak/core'
import type { NodeOfSlot } from '../decide/access-totals.ts'
import type { HotKeys } from '../decide/hot-keys.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { NearKey } from '../heat/near-key.ts'
import type { DownSampler } from './down-sampler.ts'

export interface HeatSamplerOptions {
  readonly keys: HotKeys
  readonly fleet: Fleet
  readonly nodeOfSlot: NodeOfSlot
  /** The hottest keys of each second. */
  readonly maxKeys: number
}

/** The busiest slots and services of each second. */
const maxSlots = 64
const maxServices = 100
/** A second is recorded once its reports have arrived; after this long it is gone. */
const settleSeconds = 2
const maxBehindSeconds = 50

const lettersOf: Readonly<Record<StrategyName, HeatLetter>> = {
  LocalCache: 'm',
  RedundantKeys: 'c',
  RateLimit: 'l',
  Combine: 'i',
  Observe: 'o',
}

/** Records once a second what was hot: off the path of reports, from what the hub shows anyway. */
export class HeatSampler {
  readonly #options: HeatSamplerOptions
  readonly #into: DownSampler
  #lastSecond = -1
  #lastSlotSecond = -1

  constructor(into: DownSampler, options: HeatSamplerOptions) {
    this.#into = into
    this.#options = options
  }

  sample(now: number): void {
    const second = Math.floor(now / 1000) - settleSeconds
    if (this.#lastSecond < 0) this.#lastSecond = second - 1
    // The clock was moved, or the hub stood still: those seconds are lost.
    if (second < this.#lastSecond || second - this.#lastSecond > maxBehindSeconds) this.#lastSecond = second - 1
    for (let next = this.#lastSecond + 1; next <= second; next++) {
      this.#into.addTraffic(next * 1000, this.#options.fleet.traffic.second(next))
      this.#sampleKeys(next, next === second)
    }
    this.#lastSecond = second
    this.#sampleSums(Math.floor(now / 1000) - 1, now)
  }

  #sampleKeys(second: number, isNewest: boolean): void {
    const { keys, fleet, nodeOfSlot, maxKeys } = this.#options
    for (const near of hottest(keys.engine.shown(), second, maxKeys)) {
      const { accesses, writes, bytes } = near.lastMinute!.second(second)
      const { redisClusterId, slot } = near
      const { letter, ruleId } = standing(near)
      this.#into.add(second * 1000, {
        kind: 'key',
        redisClusterId,
        name: keyText(near.key),
        accesses: Math.round(accesses),
        writes: Math.round(writes),
        bytes: Math.round(bytes),
        // Reported in statuses, which arrive about once a second: what arrived since belongs to this second.
        saved: isNewest ? fleet.effects.takeSaved(redisClusterId, near.key) : 0,
        letter,
        services: near.tracks.flatMap(({ services }) => [...services]),
        ruleId,
        slot,
        node: nodeOfSlot(redisClusterId, slot),
      })
    }
  }

  /** Services, nodes and slots of the last full second. */
  #sampleSums(second: number, now: number): void {
    if (second <= this.#lastSlotSecond && this.#lastSlotSecond - second < maxBehindSeconds) return
    this.#lastSlotSecond = second
    const { keys, fleet, nodeOfSlot } = this.#options
    const add = (kind: 'service' | 'node' | 'slot', redisClusterId: string, name: string, count: number, slot = -1) => {
      const accesses = Math.round(count)
      const amounts = { accesses, writes: 0, bytes: 0, saved: 0, letter: '.' as const }
      const node = kind === 'slot' ? nodeOfSlot(redisClusterId, slot) : ''
      if (accesses > 0)
        this.#into.add(second * 1000, {
          kind,
          redisClusterId,
          name,
          ...amounts,
          services: [],
          ruleId: undefined,
          slot,
          node,
        })
    }
    for (const [redisClusterId, counts] of keys.slots.lastSecond(now)) {
      const nodes = new Map<string, number>()
      counts.forEach((count, slot) => {
        if (count === 0) return
        const node = nodeOfSlot(redisClusterId, slot)
        nodes.set(node, (nodes.get(node) ?? 0) + count)
      })
      for (const [node, count] of nodes) add('node', redisClusterId, node, count)
      for (const slot of busiest(counts, maxSlots)) add('slot', redisClusterId, String(slot), counts[slot]!, slot)
    }
    const services = new Map<string, number>()
    for (const { serviceId, accesses } of fleet.hosts.all()) {
      services.set(serviceId, (services.get(serviceId) ?? 0) + accesses.sum(now) / 2)
    }
    for (const [service, rate] of [...services].sort((a, b) => b[1] - a[1]).slice(0, maxServices))
      add('service', '', service, rate)
  }
}

/** The hottest keys of a second; hot ones first, so that none is missing if many are warm. */
function hottest(shown: Iterable<NearKey>, second: number, limit: number): NearKey[] {
  let found: { near: NearKey; heat: number }[] = []
  const cut = () => {
    found.sort((a, b) => b.heat - a.heat || (a.near.key < b.near.key ? -1 : 1))
    found = found.slice(0, limit)
  }
  for (const near of shown) {
    const heat = near.lastMinute!.second(second).accesses
    if (heat > 0) found.push({ near, heat })
    // Cut now and then: sorting a hundred thousand would take too long.
    if (found.length >= limit * 8) cut()
  }
  cut()
  return found.map(({ near }) => near)
}

function busiest(counts: Float64Array, limit: number): number[] {
  let found: number[] = []
  const cut = () => {
    found.sort((a, b) => counts[b]! - counts[a]! || a - b)
    found = found.slice(0, limit)
  }
  counts.forEach((count, slot) => {
    if (count === 0) return
    found.push(slot)
    if (found.length >= limit * 8) cut()
  })
  cut()
  return found
}

/** What is currently done about a key; with several rules, by the one that does most. */
function standing(near: NearKey): { readonly letter: HeatLetter; readonly ruleId: string | undefined } {
  let best: { letter: HeatLetter; ruleId: string | undefined } = { letter: '.', ruleId: undefined }
  for (const { rule, state } of near.tracks) {
    if (state === undefined) continue
    if (state.phase === 'warming') {
      if (best.letter === '.') best = { letter: 'w', ruleId: undefined }
      continue
    }
    const letter = rule?.mode === 'on' ? lettersOf[state.entry.strategy.strategy] : 'o'
    if (best.ruleId === undefined || best.letter === 'o') best = { letter, ruleId: rule?.id }
  }
  return best
}
