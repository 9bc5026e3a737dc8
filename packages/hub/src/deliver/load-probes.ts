import type { ProbePayload } from '@firebreak/core'
import type { Autopilot } from '../auto/autopilot.ts'

/** A sensor that can be asked to measure nodes. */
export interface ProbingSensor {
  /** The clusters that it reaches. */
  readonly measurable: ReadonlySet<string>
  probe(payload: ProbePayload): void
}

/** How often nodes are measured: INFO costs a node some 0.1 ms. */
const everyMs = 1000
/** A cluster of which nothing came for this long gets another sensor. */
const silentMs = 5000
/** How often measuring processes are asked again; without that they stop. */
const renewMs = 3000

/** Chooses, for each cluster, the one sensor of this hub that measures its nodes; none while no rule goes by it. */
export class LoadProbes {
  readonly #autopilot: Pick<Autopilot, 'isWanted' | 'loads'>
  /** Who measures a cluster, and since when. */
  readonly #chosen = new Map<string, { readonly sensor: ProbingSensor; readonly since: number }>()
  #asked = new Map<ProbingSensor, string>()
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(autopilot: Pick<Autopilot, 'isWanted' | 'loads'>) {
    this.#autopilot = autopilot
  }

  /** Once a second, with all sensors that are connected. */
  ask(sensors: readonly ProbingSensor[], now: number): void {
    const wanted = new Map<ProbingSensor, string[]>()
    if (this.#autopilot.isWanted) {
      for (const [cluster, candidates] of byCluster(sensors)) {
        const sensor = this.#choose(cluster, candidates, now)
        const clusters = wanted.get(sensor)
        if (clusters === undefined) wanted.set(sensor, [cluster])
        else clusters.push(cluster)
      }
    } else this.#chosen.clear()
    const isDue = now - this.#askedAt >= renewMs
    if (isDue) this.#askedAt = now
    const asked = new Map<ProbingSensor, string>()
    for (const [sensor, redisClusterIds] of wanted) {
      const what = redisClusterIds.join('\u0000')
      asked.set(sensor, what)
      if (isDue || this.#asked.get(sensor) !== what) sensor.probe({ redisClusterIds, everyMs })
    }
    const connected = new Set(sensors)
    for (const sensor of this.#asked.keys())
      if (!asked.has(sensor) && connected.has(sensor)) sensor.probe({ redisClusterIds: [], everyMs })
    this.#asked = asked
  }

  #choose(cluster: string, candidates: readonly ProbingSensor[], now: number): ProbingSensor {
    const chosen = this.#chosen.get(cluster)
    const isThere = chosen !== undefined && candidates.includes(chosen.sensor)
    const heardAt = Math.max(this.#autopilot.loads.measuredAt(cluster), chosen?.since ?? 0)
    if (isThere && now - heardAt < silentMs) return chosen.sensor
    // The next one after the silent one.
    const next = candidates[(isThere ? candidates.indexOf(chosen.sensor) + 1 : 0) % candidates.length]!
    this.#chosen.set(cluster, { sensor: next, since: now })
    return next
  }
}

function byCluster(sensors: readonly ProbingSensor[]): Map<string, ProbingSensor[]> {
  const clusters = new Map<string, ProbingSensor[]>()
  for (const sensor of sensors) {
    for (const cluster of sensor.measurable) {
      const known = clusters.get(cluster)
      if (known === undefined) clusters.set(cluster, [sensor])
      else known.push(sensor)
    }
  }
  return clusters
}
