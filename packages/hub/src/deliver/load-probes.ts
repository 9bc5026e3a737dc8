import type { NodeLoad, ProbePayload } from '@firebreak/core'
import type { Autopilot } from '../auto/autopilot.ts'
import { LoadWitnesses } from '../auto/load-witnesses.ts'

/** A sensor that can be asked to measure nodes. */
export interface ProbingSensor {
  readonly hostId: string
  /** The clusters that it reaches. */
  readonly measurable: ReadonlySet<string>
  probe(payload: ProbePayload): void
}

/** How often nodes are measured: INFO costs a node some 0.1 ms. */
const everyMs = 1000
/** Sensors that measure a cluster at a time: with three, one that lies is outvoted. */
const maxChosen = 3
/** A sensor silent for this long is replaced by another. */
const silentMs = 5000
/** How often the request to measure is renewed; otherwise processes stop. */
const renewMs = 3000

interface Chosen {
  readonly sensor: ProbingSensor
  /** When it was chosen, or last answered. */
  heardAt: number
}

/**
 * Chooses, for each cluster, the few sensors of this hub that measure its nodes, on different hosts if possible; none
 * while no rule needs it. Only requested measurements count, as far as the sensors agree.
 */
export class LoadProbes {
  readonly #autopilot: Pick<Autopilot, 'isWanted'>
  readonly #witnesses = new LoadWitnesses()
  readonly #chosen = new Map<string, readonly Chosen[]>()
  #asked = new Map<ProbingSensor, string>()
  #askedAt = Number.NEGATIVE_INFINITY

  constructor(autopilot: Pick<Autopilot, 'isWanted'>) {
    this.#autopilot = autopilot
  }

  /** Takes a sensor's measurements; returns the figures to use. */
  take(sensor: ProbingSensor, nodes: readonly NodeLoad[], now: number): NodeLoad[] {
    const agreed: NodeLoad[] = []
    for (const [cluster, own] of Map.groupBy(nodes, ({ redisClusterId }) => redisClusterId)) {
      const chosen = this.#chosen.get(cluster) ?? []
      const witness = chosen.find((one) => one.sensor === sensor)
      if (witness === undefined) continue
      witness.heardAt = now
      agreed.push(...this.#witnesses.take(cluster, own, sensor, chosen.length, now))
    }
    return agreed
  }

  /** Called once a second, with all connected sensors. */
  ask(sensors: readonly ProbingSensor[], now: number): void {
    const wanted = new Map<ProbingSensor, string[]>()
    const clusters = this.#autopilot.isWanted ? byCluster(sensors) : new Map<string, ProbingSensor[]>()
    for (const cluster of this.#chosen.keys()) if (!clusters.has(cluster)) this.#chosen.delete(cluster)
    for (const [cluster, candidates] of clusters) {
      for (const { sensor } of this.#choose(cluster, candidates, now)) {
        const own = wanted.get(sensor)
        if (own === undefined) wanted.set(sensor, [cluster])
        else own.push(cluster)
      }
    }
    this.#witnesses.keep(new Set(this.#chosen.keys()))
    this.#send(wanted, new Set(sensors), now)
  }

  #send(wanted: ReadonlyMap<ProbingSensor, string[]>, connected: ReadonlySet<ProbingSensor>, now: number): void {
    const isDue = now - this.#askedAt >= renewMs
    if (isDue) this.#askedAt = now
    const asked = new Map<ProbingSensor, string>()
    for (const [sensor, redisClusterIds] of wanted) {
      const what = redisClusterIds.join('\u0000')
      asked.set(sensor, what)
      if (isDue || this.#asked.get(sensor) !== what) sensor.probe({ redisClusterIds, everyMs })
    }
    for (const sensor of this.#asked.keys())
      if (!asked.has(sensor) && connected.has(sensor)) sensor.probe({ redisClusterIds: [], everyMs })
    this.#asked = asked
  }

  #choose(cluster: string, candidates: readonly ProbingSensor[], now: number): readonly Chosen[] {
    const before = (this.#chosen.get(cluster) ?? []).filter(({ sensor }) => candidates.includes(sensor))
    const heard = before.filter(({ heardAt }) => now - heardAt < silentMs)
    const silent = before.filter((one) => !heard.includes(one))
    // Those after the silent ones come first; the silent ones again if there are no others.
    const turn = silent.length === 0 ? 0 : candidates.indexOf(silent.at(-1)!.sensor) + 1
    const inTurn = [...candidates.slice(turn), ...candidates.slice(0, turn)]
    const rest = inTurn.filter((one) => !before.some(({ sensor }) => sensor === one))
    const next = [...rest, ...silent.map(({ sensor }) => sensor)]
    const chosen = [...heard]
    for (const isOfOtherHost of [true, false]) {
      for (const sensor of next) {
        if (chosen.length >= maxChosen) break
        if (chosen.some((one) => one.sensor === sensor)) continue
        if (isOfOtherHost && chosen.some((one) => one.sensor.hostId === sensor.hostId)) continue
        chosen.push({ sensor, heardAt: now })
      }
    }
    this.#chosen.set(cluster, chosen)
    return chosen
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
