import type { Clock, StatusPayload } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { FleetAlarms } from './fleet-alarms.ts'
import { HostRegister, type Instance } from './host-register.ts'
import { KeyEffects } from './key-effects.ts'
import { SensorBounds, type SensorBoundsOptions } from './sensor-bounds.ts'
import { StalenessBoard } from './staleness-board.ts'
import { TrafficMeter } from './traffic-meter.ts'

export interface FleetOptions extends SensorBoundsOptions {
  readonly clock: Clock
  readonly hostTimeoutMs: number
  readonly maxInstances: number
  readonly alarms: AlarmBoard
  readonly ruleOf: (id: string) => Rule | undefined
  /** Reports refused since start, by cause. */
  readonly refused: () => Readonly<Record<string, number>>
}

/** Clusters whose masters are counted. */
const maxClusters = 1000

/** What the hub knows of the processes that report: who they are, what their shields do, and what is wrong with them. */
export class Fleet {
  readonly hosts: HostRegister
  readonly bounds: SensorBounds
  readonly traffic = new TrafficMeter()
  readonly effects = new KeyEffects()
  readonly staleness = new StalenessBoard()
  readonly #clock: Clock
  readonly #alarms: FleetAlarms
  /** Masters of each cluster, as its sensors see them. */
  readonly #nodeCounts = new Map<string, number>()

  constructor(options: FleetOptions) {
    this.#clock = options.clock
    this.hosts = new HostRegister(options)
    this.bounds = new SensorBounds(options, options.alarms)
    this.#alarms = new FleetAlarms({ ...options, hosts: this.hosts, staleness: this.staleness })
  }

  /** What a sensor's shield did since its last status. */
  takeStatus(instance: Instance, status: StatusPayload): void {
    const now = this.#clock.now()
    const { counters } = status
    const { reads, writes, localHits, copyReads, limited } = counters
    const redis = Math.max(0, reads - localHits - copyReads - limited)
    const from = instance.lastStatusAt ?? now - 1000
    this.traffic.add(from, now, { redis, local: localHits, copies: copyReads, limited, writes })
    instance.takeStatus(status, now)
    for (const effect of status.keys) {
      this.effects.add(effect, now, instance.instanceId)
      const { ruleId, staleMs } = effect
      if (ruleId !== undefined && staleMs !== undefined) this.#alarms.observe(ruleId, staleMs, now)
    }
    for (const [redisClusterId, count] of Object.entries(status.nodeCounts ?? {})) {
      const isKnown = this.#nodeCounts.has(redisClusterId)
      if (isKnown || this.#nodeCounts.size < maxClusters) this.#nodeCounts.set(redisClusterId, count)
    }
  }

  /** Masters of a cluster; 1 where no sensor has told. */
  nodeCount(redisClusterId: string): number {
    return this.#nodeCounts.get(redisClusterId) ?? 1
  }

  /** Once a second. */
  forget(now: number): void {
    this.hosts.expire(now)
    this.traffic.forget(now)
    this.effects.forget(now)
    this.staleness.forget(now)
  }

  /** Once a second: raises and ends alarms. */
  watch(now: number): void {
    this.#alarms.watch(now)
    this.bounds.watch(now)
  }
}
