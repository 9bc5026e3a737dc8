import { keyText, readableKey, type StrategyName } from '@firebreak/core'
import type { HandledKey } from '../decide/heat-decider.ts'
import type { HostRegister, KeyCarrier } from '../fleet/host-register.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { AlarmBoard } from './alarm-board.ts'

/** Below this rate nothing suffers, whatever the share. */
export const minAlarmRatePerSecond = 100

/** Leaves room on the board for other alarms. */
const maxAlarms = 10

export interface HotKeyAlarmsOptions {
  readonly alarms: AlarmBoard
  readonly hosts: Pick<HostRegister, 'ratePerSecond' | 'carriers'>
  /** All keys that are hot. */
  readonly hotKeys: () => Iterable<HandledKey>
  /** Whether a config centre carries tables to processes without a link. */
  readonly isPublished: () => boolean
  /** Protection being off has its own alarm. */
  readonly isOff: () => boolean
  /** The share of all accesses from which an unhandled key raises an alarm; 0: never. */
  readonly share: number
}

/** Raises an alarm for a key that takes much of the load and is not handled, and ends it once it is. */
export class HotKeyAlarms {
  readonly #options: HotKeyAlarmsOptions

  constructor(options: HotKeyAlarmsOptions) {
    this.#options = options
  }

  /** Called once a second. */
  watch(now: number): void {
    const { alarms, hotKeys, hosts, isPublished, share, isOff } = this.#options
    const lasting = new Set<string>()
    if (share > 0 && !isOff()) {
      const total = hosts.ratePerSecond(now)
      const carrierOf = hosts.carriers(isPublished())
      for (const { track, entry } of hotKeys()) {
        if (lasting.size >= maxAlarms) break
        const ratePerSecond = (track.heat('accesses', now) * 1000) / track.windowMs
        if (ratePerSecond < minAlarmRatePerSecond || ratePerSecond < total * share) continue
        const why = whyNothing(track, entry.strategy.strategy, carrierOf)
        if (why === undefined) continue
        const key = keyText(track.key)
        const id = `hot-key:${track.redisClusterId}/${key}`
        lasting.add(id)
        const part = Math.min(100, Math.round((ratePerSecond / Math.max(total, ratePerSecond)) * 100))
        const cause = `${readableKey(key)} takes ${part} % of all accesses and is not being handled: ${why}`
        const retry = 'Open the key and cache, copy or limit it, or change its rule.'
        const { redisClusterId } = track
        alarms.raise({ id, severity: 'warning', cause, retry, subject: { redisClusterId, key } })
      }
    }
    alarms.keepOnly('hot-key', lasting)
  }
}

/** Undefined if a strategy is being carried out. */
function whyNothing(
  { rule, services }: HeatTrack,
  strategy: StrategyName,
  carrierOf: (services: ReadonlySet<string>) => KeyCarrier,
): string | undefined {
  if (rule?.mode === 'shadow') return `rule ${rule.id} is in shadow mode`
  if (strategy === 'Observe') return `rule ${rule?.id ?? ''} only observes`
  switch (carrierOf(services)) {
    case 'none':
      return 'no process that uses it is connected to this hub'
    case 'reports':
      return 'the services that use it only send reports; let them read /v1/table'
    default:
      return undefined
  }
}
