import { type DryRunView, keyBytes } from '@firebreak/core'
import { type Rule, RuleSet } from '@firebreak/core/rules'
import { CountedClusters } from '../heat/counted-clusters.ts'
import type { RecordedSecond } from '../heat/heat-recorder.ts'
import { NearKeys } from '../heat/near-keys.ts'
import { AccessTotals, type NodeOfSlot } from './access-totals.ts'
import { chooseFirstStrategy } from './choose-strategy.ts'
import { Decider } from './decider.ts'
import { bytesText } from './reason.ts'

const parts = 10

/**
 * Tries a rule on what was recorded: the same windows and the same decider, driven by the recorded seconds instead of the
 * clock. Services are not recorded, so a rule of one service is tried as if it were for all. Keys that were not among
 * the hottest of a second are not in its record; a threshold far below them finds too little.
 */
export function dryRun(rule: Rule, seconds: readonly RecordedSecond[], nodeOfSlot: NodeOfSlot): DryRunView {
  const set = new RuleSet([{ ...rule, mode: 'on', serviceId: '*' }])
  // Every recorded key is looked up by name: all are near.
  const engine = new NearKeys(new CountedClusters({ maxKeys: 1, hashSeed: 0 }))
  engine.setRules(set.rules)
  const totals = new AccessTotals(nodeOfSlot)
  totals.setRules(set.rules)
  let firings = 0
  let now = seconds[0]?.at ?? 0
  const decider = new Decider({
    clock: { now: () => now },
    settleMs: 0,
    settleJitterMs: 0,
    entryTtlMs: Number.MAX_SAFE_INTEGER,
    tickMs: 1000,
    random: () => 0,
    sink: { set() {}, remove() {} },
    totals,
    chooseStrategy: chooseFirstStrategy,
    processCount: () => 0,
    record: ({ kind }) => {
      if (kind === 'hot') firings++
    },
  })
  decider.setRules(set.rules)
  const hotKeys = new Set<string>()
  let reads = 0
  let hotReads = 0
  let hotBytes = 0
  for (const { at, total, keys, counts } of seconds) {
    let writesOfSecond = 0
    for (const cluster of new Set(keys.map(({ redisClusterId }) => redisClusterId)))
      totals.addReport(cluster, '', at, total)
    keys.forEach(({ redisClusterId, key, slot }, index) => {
      const [accesses, writes, bytes] = counts.subarray(index * 3) as unknown as [number, number, number]
      writesOfSecond += writes
      const name = keyBytes(key)
      const heat = engine.find(redisClusterId, name, 0, name.length, at)!
      const track = engine.trackOf(heat, set.scope(redisClusterId, ''))
      if (track.services.size === 0) track.addService('')
      // Spread over the second, as it came.
      for (let part = 0; part < parts; part++) {
        track.add(at + ((part + 0.5) * 1000) / parts, accesses / parts, writes / parts, bytes / parts)
      }
      totals.addEntry(redisClusterId, slot, at, accesses)
      decider.onHeat(track, at + 1000)
      if (track.state === undefined || track.state.phase === 'warming') return
      hotKeys.add(`${redisClusterId}\u0000${key}`)
      hotReads += accesses - writes
      hotBytes += bytes
    })
    reads += Math.max(0, total - writesOfSecond)
    now = at + 1000
    decider.tick(now)
  }
  const readShare = reads === 0 ? 0 : Math.min(1, hotReads / reads)
  const times = firings === 1 ? 'once' : `${firings} times`
  const text =
    firings === 0
      ? `would not have fired in the last ${seconds.length} s`
      : `would have fired ${times} in the last ${seconds.length} s, ${Math.round(readShare * 100)} % of reads, ${bytesText(hotBytes)}`
  return { seconds: seconds.length, firings, keys: hotKeys.size, readShare, bytes: hotBytes, text }
}
