import type { SectionSurvey } from '@firebreak/core'
import type { AlarmBoard } from '../alarms/alarm-board.ts'
import { ApiProblem } from '../errors.ts'
import type { Instance } from './host-register.ts'
import { processName } from './process-name.ts'

/** Bounds on what one process may report: no more than a process can do. */
export interface SensorBoundsOptions {
  /** Accesses a second that one process may count. @default 2000000 */
  readonly maxInstanceAccessesPerSecond: number
  /** Entries a second that one process may report. @default 100000 */
  readonly maxInstanceKeysPerSecond: number
  /** Clusters that one process may name. @default 100 */
  readonly maxInstanceClusters: number
}

/**
 * How much allowance a silent process accumulates: reports of this long may arrive together, as after a lost
 * connection.
 */
const burstMs = 10_000
/** Bytes allowed per allowed entry: keys are shorter on average. */
const bytesPerEntry = 128
/** For frames other than reports: statuses of ten thousand hot keys, once a second. */
const statusBytesPerSecond = 4 * 1024 * 1024
const claimsPerSecond = 50
/** A few tens are usual. */
const framesPerSecond = 1000
/**
 * The weight of frame types: two of them are answered with the whole table. Two hellos per second, and twenty at once,
 * cover a process that keeps losing its connections.
 */
export const frameWeights = { hello: 500, resync: 100, any: 1 } as const
/** Wrong claims of one process that are recorded in the history. */
const rollbacksPerSecond = 0.5
const cutOffMs = 60_000
const maxCutOff = 10_000
const maxAlarms = 20

/** A process reported more than one can do. */
export class SensorBoundsError extends ApiProblem {
  constructor(message: string) {
    super(429, 'FB_SENSOR_BOUNDS', message)
  }
}

/** One process' remaining allowance. */
export class Allowance {
  #used = 0
  #at = 0

  /** True if `amount` is within `perSecond` plus the accumulated allowance. */
  take(amount: number, perSecond: number, now: number): boolean {
    this.#used = Math.max(0, this.#used - ((now - this.#at) * perSecond) / 1000)
    this.#at = now
    if (this.#used + amount > (perSecond * burstMs) / 1000) return false
    this.#used += amount
    return true
  }
}

/** The recent volume of one process' reports. */
export class InstanceUse {
  readonly accesses = new Allowance()
  readonly keys = new Allowance()
  readonly bytes = new Allowance()
  readonly claims = new Allowance()
  readonly frames = new Allowance()
  /** For frames other than reports. */
  readonly frameBytes = new Allowance()
  readonly rollbacks = new Allowance()
  readonly clusters = new Set<string>()
}

/**
 * Limits the damage from a lying or broken process: one that reports more than a process can do is cut off for a
 * minute, with an alarm.
 */
export class SensorBounds {
  readonly #options: SensorBoundsOptions
  readonly #alarms: AlarmBoard
  readonly #cutOff = new Map<string, number>()

  constructor(options: SensorBoundsOptions, alarms: AlarmBoard) {
    this.#options = options
    this.#alarms = alarms
  }

  /** Throws `SensorBoundsError` if a report exceeds what its process can have seen. */
  checkReport(instance: Instance, sections: readonly SectionSurvey[], byteCount: number, now: number): void {
    this.checkCutOff(instance, now)
    const { maxInstanceAccessesPerSecond, maxInstanceKeysPerSecond, maxInstanceClusters } = this.#options
    const { accesses, keys, bytes, clusters } = instance.use
    let [count, entries] = [0, 0]
    for (const section of sections) {
      count += section.totalCount
      entries += section.entryCount
      clusters.add(section.redisClusterId)
    }
    if (!accesses.take(count, maxInstanceAccessesPerSecond, now)) {
      this.#refuse(instance, `counted more than maxInstanceAccessesPerSecond (${maxInstanceAccessesPerSecond})`, now)
    }
    if (!keys.take(entries, maxInstanceKeysPerSecond, now)) {
      this.#refuse(instance, `reported more than maxInstanceKeysPerSecond (${maxInstanceKeysPerSecond})`, now)
    }
    if (!bytes.take(byteCount, maxInstanceKeysPerSecond * bytesPerEntry, now)) {
      const what = `reported more than ${bytesPerEntry} bytes for each of maxInstanceKeysPerSecond (${maxInstanceKeysPerSecond})`
      this.#refuse(instance, what, now)
    }
    if (clusters.size > maxInstanceClusters) this.#refuseClusters(instance, now)
  }

  /** Throws if the process names more clusters than a process uses, in reports or elsewhere. */
  checkClusters(instance: Instance, names: Iterable<string>, now: number): void {
    const { clusters } = instance.use
    for (const name of names) {
      clusters.add(name)
      if (clusters.size > this.#options.maxInstanceClusters) this.#refuseClusters(instance, now)
    }
  }

  checkClaim(instance: Instance, now: number): void {
    if (instance.use.claims.take(1, claimsPerSecond, now)) return
    this.#refuse(instance, `claimed more than ${claimsPerSecond} keys a second`, now)
  }

  /** Throws if the process sends more bytes in frames other than reports than a process can. */
  checkFrameBytes(instance: Instance, byteCount: number, now: number): void {
    if (instance.use.frameBytes.take(byteCount, statusBytesPerSecond, now)) return
    this.#refuse(instance, `sent more than ${statusBytesPerSecond} bytes of statuses and other frames a second`, now)
  }

  /** Throws if the process sends more frames, of any kind, than a process can. */
  checkFrame(instance: Instance, kind: keyof typeof frameWeights, now: number): void {
    const weight = frameWeights[kind]
    if (instance.use.frames.take(weight, framesPerSecond, now)) return
    const what = `more than ${framesPerSecond / weight} ${kind === 'any' ? '' : `${kind} `}frames a second`
    this.#refuse(instance, `sent ${what}`, now)
  }

  /** Whether another wrong claim of the process may be recorded in the history. */
  mayRecord(instance: Instance, now: number): boolean {
    return instance.use.rollbacks.take(1, rollbacksPerSecond, now)
  }

  /** Throws while the process is cut off. */
  checkCutOff(instance: Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>, now: number): void {
    const until = this.#cutOff.get(idOf(instance))
    if (until === undefined || until <= now) return
    throw new SensorBoundsError(
      `this process is cut off for ${Math.ceil((until - now) / 1000)} s: it exceeded its limits`,
    )
  }

  /** Called once a second: ends alarms whose time is over. */
  watch(now: number): void {
    for (const [id, until] of this.#cutOff) {
      if (until > now) continue
      this.#cutOff.delete(id)
      this.#alarms.clear(`sensor:${id}`)
    }
  }

  #refuseClusters(instance: Instance, now: number): never {
    const { maxInstanceClusters } = this.#options
    this.#refuse(instance, `names more clusters than maxInstanceClusters (${maxInstanceClusters})`, now)
  }

  #refuse(instance: Instance, what: string, now: number): never {
    const id = idOf(instance)
    if (this.#cutOff.size < maxCutOff) this.#cutOff.set(id, now + cutOffMs)
    if (this.#cutOff.size <= maxAlarms) {
      const retry = `it may reconnect after ${cutOffMs / 1000} s; to block it: firebreak hosts bar ${id}`
      this.#alarms.raise({ id: `sensor:${id}`, severity: 'warning', cause: `${id} ${what} and is cut off`, retry })
    }
    // It starts over when it reconnects.
    instance.use = new InstanceUse()
    throw new SensorBoundsError(`this process ${what}; it is cut off for ${cutOffMs / 1000} s`)
  }
}

/** A process' name for users. */
export function idOf({ serviceId, hostId, instanceId }: Pick<Instance, 'serviceId' | 'hostId' | 'instanceId'>): string {
  return processName(serviceId, hostId, instanceId)
}
