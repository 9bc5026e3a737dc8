import { type ClaimPayload, type HistoryEvent, keyBytes, parseKeyText, type RuleSet } from '@firebreak/core'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HeatEngine } from '../heat/heat-engine.ts'
import type { Instance } from '../hosts/host-register.ts'
import type { HeatDecider } from './heat-decider.ts'

export interface JudgeClaimParts {
  readonly engine: HeatEngine
  readonly decider: HeatDecider
  readonly delivery: TableDelivery
  readonly rules: RuleSet
  readonly now: number
}

/** A process acted on its own crossing: confirmed by the table, or taken back, which is what this gives. */
export function judgeClaim(
  claim: ClaimPayload,
  { serviceId, hostId }: Instance,
  { engine, decider, delivery, rules, now }: JudgeClaimParts,
): HistoryEvent | undefined {
  const key = parseKeyText(claim.key)
  if (key === undefined || !Number.isFinite(claim.heat)) return undefined
  const { redisClusterId, ruleId } = claim
  const bytes = keyBytes(key)
  const heat = engine.find(redisClusterId, bytes, 0, bytes.length, now)
  const track = heat && engine.trackOf(heat, rules.scope(redisClusterId, serviceId))
  const isConfirmed = track?.rule?.id === ruleId && decider.confirmClaim(track, claim.heat, now)
  if (isConfirmed) {
    if (!track.services.has(serviceId)) delivery.addService(track, serviceId)
    return undefined
  }
  delivery.takeBack(serviceId, redisClusterId, key)
  const text = `a claim of ${hostId} under rule \`${ruleId}\` was taken back`
  return { at: now, kind: 'rollback', redisClusterId, key: claim.key, ruleId, text }
}
