import type { InspectedPayload, Runtime, TimerHandle } from '@firebreak/core'

/** A process that can be asked about keys. */
export interface InspectedSensor {
  readonly serviceId: string
  readonly hostId: string
  readonly redisClusterIds: readonly string[]
  ask(id: string, redisClusterId: string, key: string, wantsValue: boolean): void
}

/** A process' answer. */
export interface Inspection {
  readonly sensor: Pick<InspectedSensor, 'serviceId' | 'hostId'>
  readonly found: InspectedPayload
}

/** After this long without an answer, the next process is asked. */
const timeoutMs = 5000
/** Number of processes asked one after another. */
const maxAsked = 3
/** Questions that may be pending at once. */
const maxWaiting = 100

/** Asks processes about keys, over the links on which they report: the hub has no connection to the protected Redis. */
export class Inspections {
  readonly #runtime: Runtime
  readonly #waiting = new Map<
    string,
    { readonly timer: TimerHandle; resolve(found: InspectedPayload | undefined): void }
  >()

  constructor(runtime: Runtime) {
    this.#runtime = runtime
  }

  /** Asks one after another until one knows; undefined if none does, with the last one's answer. */
  async ask(
    sensors: readonly InspectedSensor[],
    redisClusterId: string,
    key: string,
    wantsValue: boolean,
  ): Promise<Inspection | { readonly problem: string }> {
    let problem = 'no process that uses the key can be asked: none is connected, or all run an earlier version'
    for (const sensor of sensors.slice(0, maxAsked)) {
      const found = await this.#askOne(sensor, redisClusterId, key, wantsValue)
      if (found?.type !== undefined) return { sensor, found }
      problem = `${sensor.hostId} did not answer: ${found?.problem ?? 'it did not answer in time'}`
    }
    return { problem }
  }

  /** A process answers; unrequested or late answers are ignored. */
  answered(found: InspectedPayload): void {
    const waiting = this.#waiting.get(found.id)
    if (waiting === undefined) return
    this.#waiting.delete(found.id)
    waiting.timer.cancel()
    waiting.resolve(found)
  }

  #askOne(
    sensor: InspectedSensor,
    redisClusterId: string,
    key: string,
    wantsValue: boolean,
  ): Promise<InspectedPayload | undefined> {
    if (this.#waiting.size >= maxWaiting) return Promise.resolve(undefined)
    const { timers, newId } = this.#runtime
    const id = newId()
    return new Promise((resolve) => {
      const timer = timers.setTimeout(() => {
        this.#waiting.delete(id)
        resolve(undefined)
      }, timeoutMs)
      this.#waiting.set(id, { timer, resolve })
      sensor.ask(id, redisClusterId, key, wantsValue)
    })
  }
}
