import { keyBytes, type RuleSet } from '@firebreak/core'
import type { HeatDecider } from '../decide/heat-decider.ts'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HeatEngine } from '../heat/heat-engine.ts'
import type { HostRegister } from '../hosts/host-register.ts'
import type { PrewarmJob, PrewarmResult } from './prewarmer.ts'

export interface WarmKeysParts {
  readonly engine: HeatEngine
  readonly decider: HeatDecider
  readonly delivery: TableDelivery
  readonly hosts: HostRegister
  readonly rules: RuleSet
  readonly now: number
}

/** Makes keys hot before they are: each by the rule that matches it, held for the job's time. */
export function warmKeys(
  { redisClusterId, keys, services, forMs, who }: PrewarmJob,
  { engine, decider, delivery, hosts, rules, now }: WarmKeysParts,
): PrewarmResult {
  const targets = services.length > 0 ? services : hosts.services()
  const unmatched: string[] = []
  for (const key of keys) {
    const bytes = keyBytes(key)
    const heat = engine.find(redisClusterId, bytes, 0, bytes.length, now)
    const track = heat && engine.trackOf(heat, rules.scope(redisClusterId, targets[0] ?? ''))
    if (heat === undefined || track?.rule === undefined || track.rule.mode !== 'on') {
      unmatched.push(key)
      continue
    }
    for (const service of targets) if (!track.services.has(service)) track.addService(service)
    decider.warm(track, `pre-warmed by ${who}`, now, forMs)
    engine.consider(heat, track, now)
  }
  delivery.flush()
  return { warmed: keys.length - unmatched.length, unmatched }
}
