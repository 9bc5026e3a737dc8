import type { Clock, KeyEffect, StatusPayload } from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import type { AppGrant } from '../access/credential.ts'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import type { PassingAlarms } from '../alarms/passing-alarms.ts'
import { FleetAlarms } from './fleet-alarms.ts'
import { HostRegister, type Instance } from './host-register.ts'
import { KeyEffects } from './key-effects.ts'
import { NodeCounts } from './node-counts.ts'
import { type frameWeights, idOf, SensorBounds, type SensorBoundsOptions } from './sensor-bounds.ts'
import { StalenessBoard } from './staleness-board.ts'
import { TokenProcesses } from './token-processes.ts'
import { TrafficMeter } from './traffic-meter.ts'

export interface FleetOptions extends SensorBoundsOptions {
  readonly clock: Clock
  readonly hostTimeoutMs: number
  readonly maxInstances: number
  readonly alarms: AlarmBoard
  readonly passing: PassingAlarms
  readonly ruleOf: (id: string) => Rule | undefined
  /** Called with what each status says about a strategy. */
  readonly onEffect: (effect: KeyEffect, hostId: string) => void
  /** The version of a service's table. */
  readonly tableVersionOf?: (serviceId: string) => number
  /** Called with each status. */
  readonly onStatus?: (instance: Instance, status: StatusPayload, now: number) => void
  readonly maxTokenProcesses: number
  /** Reports refused since start, by cause. */
  readonly refused: () => Readonly<Record<string, number>>
}

/**
 * What the hub knows about the processes that report: who they are, what their shields do, and what is wrong with them.
 */
export class Fleet {
  readonly hosts: HostRegister
  readonly bounds: SensorBounds
  readonly tokenProcesses: TokenProcesses
  /** The same for processes that report locks, and hosts that report alarms: they are counted separately. */
  readonly tellers: Readonly<Record<'locks' | 'alarms', TokenProcesses>>
  readonly traffic = new TrafficMeter()
  readonly effects = new KeyEffects()
  readonly staleness = new StalenessBoard()
  readonly #clock: Clock
  readonly #onEffect: FleetOptions['onEffect']
  readonly #onStatus: FleetOptions['onStatus']
  readonly #tableVersionOf: FleetOptions['tableVersionOf']
  readonly #alarms: FleetAlarms
  readonly #nodeCounts = new NodeCounts()

  constructor(options: FleetOptions) {
    this.#clock = options.clock
    this.#onEffect = options.onEffect
    this.#onStatus = options.onStatus
    this.#tableVersionOf = options.tableVersionOf
    this.hosts = new HostRegister(options)
    this.bounds = new SensorBounds(options, options.alarms)
    const { maxTokenProcesses, alarms } = options
    this.tokenProcesses = new TokenProcesses(maxTokenProcesses, alarms)
    this.tellers = {
      locks: new TokenProcesses(maxTokenProcesses, alarms, 'report locks'),
      alarms: new TokenProcesses(maxTokenProcesses, alarms, 'report alarms'),
    }
    this.#alarms = new FleetAlarms({ ...options, hosts: this.hosts, staleness: this.staleness })
  }

  /** What a sensor's shield has done since its last status. */
  takeStatus(instance: Instance, status: StatusPayload): void {
    const now = this.#clock.now()
    const { counters } = status
    const { reads, writes, localHits, copyReads, limited } = counters
    const redis = Math.max(0, reads - localHits - copyReads - limited)
    const from = instance.lastStatusAt ?? now - 1000
    this.traffic.add(from, now, { redis, local: localHits, copies: copyReads, limited, writes })
    instance.takeStatus(status, now, this.#tableVersionOf?.(instance.serviceId))
    this.#onStatus?.(instance, status, now)
    this.#alarms.tellTroubles(instance, status.troubles ?? [])
    const unwatched = unwatchedOf(status)
    for (const effect of status.keys) {
      this.effects.add(effect, now, instance.instanceId, !unwatched.has(effect.redisClusterId))
      this.#onEffect(effect, instance.hostId)
      const { ruleId, staleMs } = effect
      if (ruleId !== undefined && staleMs !== undefined) this.#alarms.observe(ruleId, staleMs, now)
    }
    for (const [redisClusterId, count] of Object.entries(status.nodeCounts ?? {}))
      this.#nodeCounts.add(redisClusterId, idOf(instance), count, now)
  }

  /** Masters of a cluster; 1 if no sensor has reported them. */
  nodeCount(redisClusterId: string): number {
    return this.#nodeCounts.of(redisClusterId)
  }

  /** Throws, and cuts the process off, if it claims more keys than a process can. */
  checkClaim(grant: AppGrant, instance: Instance, now: number): void {
    this.#bounded(grant, instance, now, () => this.bounds.checkClaim(instance, now))
  }

  /** The same for frames. */
  checkFrame(grant: AppGrant, instance: Instance, kind: keyof typeof frameWeights, now: number): void {
    this.#bounded(grant, instance, now, () => this.bounds.checkFrame(instance, kind, now))
  }

  /** The same for bytes. */
  checkFrameBytes(grant: AppGrant, instance: Instance, byteCount: number, now: number): void {
    this.#bounded(grant, instance, now, () => this.bounds.checkFrameBytes(instance, byteCount, now))
  }

  /** The same for the clusters that it names. */
  checkClusters(grant: AppGrant, instance: Instance, names: Iterable<string>, now: number): void {
    this.#bounded(grant, instance, now, () => this.bounds.checkClusters(instance, names, now))
  }

  #bounded(grant: AppGrant, instance: Instance, now: number, check: () => void): void {
    try {
      check()
    } catch (error) {
      this.tokenProcesses.countCutOff(grant, idOf(instance), now)
      throw error
    }
  }

  /** Called once a second. */
  forget(now: number): void {
    this.hosts.expire(now)
    this.traffic.forget(now)
    this.effects.forget(now)
    this.staleness.forget(now)
    this.#nodeCounts.forget(now)
  }

  /** Called once a second: raises and ends alarms. */
  watch(now: number): void {
    this.#alarms.watch(now)
    this.bounds.watch(now)
    this.tokenProcesses.watch(now)
    for (const tellers of Object.values(this.tellers)) tellers.watch(now)
  }
}

/**
 * The clusters whose changes a process cannot follow right now: no strategy can help it there, because its Redis is
 * unreachable or has only just come back.
 */
function unwatchedOf({ watchers }: StatusPayload): ReadonlySet<string> {
  const unwatched = new Set<string>()
  for (const { redisClusterId, state } of watchers)
    if (state === 'connecting' || state === 'expired') unwatched.add(redisClusterId)
  return unwatched
}
