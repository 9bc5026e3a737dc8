import type { StatusPayload } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { PassingAlarms } from '../alarms/passing-alarms.ts'
import type { HostRegister, Instance } from './host-register.ts'
import type { StalenessBoard } from './staleness-board.ts'

/** How long the alarm about a rule's staleness stays visible. */
const staleAlarmMs = 60_000

/** Keeps one process from filling the board. */
const maxAlarmsOfProcess = 10

/** Problems that the watcher's state reports better, and ends. */
const toldByWatchers = new Set(['tracking-refused', 'watcher-refused', 'watcher-lost'])

export interface FleetAlarmsOptions {
  readonly alarms: AlarmBoard
  readonly passing: PassingAlarms
  readonly hosts: HostRegister
  readonly staleness: StalenessBoard
  /** Reports refused since start, by cause. */
  readonly refused: () => Readonly<Record<string, number>>
  readonly ruleOf: (id: string) => Rule | undefined
}

/** Raises and ends the alarms that follow from sensors' reports: deaf shields, refused reports, stale values. */
export class FleetAlarms {
  readonly #options: FleetAlarmsOptions
  readonly #staleUntil = new Map<string, number>()
  #lastRefused = 0

  constructor(options: FleetAlarmsOptions) {
    this.#options = options
  }

  /** Called once a second. */
  watch(now: number): void {
    this.#watchShields()
    this.#watchRefusals()
    for (const [ruleId, until] of this.#staleUntil) {
      if (until > now) continue
      this.#staleUntil.delete(ruleId)
      this.#options.alarms.clear(`stale:${ruleId}`)
    }
  }

  /** A canary checked a value of a rule; one staler than the rule allows raises an alarm. */
  observe(ruleId: string, staleMs: number, now: number): void {
    const { staleness, ruleOf, alarms } = this.#options
    const rule = ruleOf(ruleId)
    // A sensor may name any rule: only existing ones count.
    if (rule === undefined) return
    staleness.add(ruleId, staleMs, now)
    const allowedMs = rule.maxStalenessMs
    if (allowedMs === undefined || staleMs <= allowedMs) return
    const cause = `a value under rule \`${ruleId}\` was ${Math.round(staleMs)} ms stale; ${allowedMs} ms are allowed`
    const retry = 'the shield reads the key from Redis for 10 s, then caches it again'
    alarms.raise({ id: `stale:${ruleId}`, severity: 'warning', cause, retry })
    this.#staleUntil.set(ruleId, now + staleAlarmMs)
  }

  /** Internal failures of a shield or proxy; each stays visible for a minute. */
  tellTroubles({ serviceId, hostId }: Instance, troubles: NonNullable<StatusPayload['troubles']>): void {
    for (const { kind, message } of troubles.slice(0, maxAlarmsOfProcess)) {
      if (toldByWatchers.has(kind)) continue
      const cause = `${serviceId} on ${hostId}: ${message}`
      const retry = "Redis calls continue without it; see the process' own warnings"
      const from = `${serviceId}/${hostId}`
      const { passing } = this.#options
      passing.show({ id: `shield:${from}/${kind}`, severity: 'warning', cause, retry }, undefined, serviceId)
    }
  }

  #watchRefusals(): void {
    const { refused: refusedByCause, alarms } = this.#options
    const refused = Object.values(refusedByCause()).reduce((sum, count) => sum + count, 0)
    if (refused > this.#lastRefused) {
      const cause = `${(refused - this.#lastRefused).toLocaleString('en-US')} reports were refused in the last second`
      alarms.raise({ id: 'reports', severity: 'warning', cause, retry: 'see ingest.refused by cause' })
    } else {
      alarms.clear('reports')
    }
    this.#lastRefused = refused
  }

  #watchShields(): void {
    const { hosts, alarms } = this.#options
    const broken = new Set<string>()
    for (const { watchers, hostId, serviceId } of hosts.all()) {
      let told = 0
      for (const { redisClusterId, kind, state, detail } of watchers) {
        const isDeaf = state === 'expired' || state === 'refused'
        if (!isDeaf && kind !== 'fallback') continue
        if (++told > maxAlarmsOfProcess) break
        const id = `watcher:${serviceId}/${hostId}/${redisClusterId}`
        broken.add(id)
        const cause = isDeaf
          ? `${serviceId} on ${hostId} is not notified of changes in ${redisClusterId}: ${detail}`
          : `${serviceId} on ${hostId} keeps values of ${redisClusterId} for fallbackTtlMs only: ${detail}`
        const retry = isDeaf ? 'the shield reconnects by itself' : 'tracking is requested again at every reconnect'
        alarms.raise({ id, severity: 'warning', cause, retry }, serviceId)
      }
    }
    alarms.keepOnly('watcher', broken)
  }
}
