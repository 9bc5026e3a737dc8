import type { NodeLoad } from '@firebreak/core'

/** All who measure answer once within this time: one round. */
const roundMs = 900
/** A process' answer counts for as long as its next one may take. */
const freshMs = 2500
/** If nobody else answers for this long, a single answer is enough. */
const aloneMs = 5000
const slotCount = 16_384

interface Testimony {
  readonly nodes: readonly NodeLoad[]
  readonly at: number
}

/** What is known about one cluster's load from those asked to measure it. */
interface Case {
  readonly testimonies: Map<object, Testimony>
  /** When two last answered, or when it was first asked. */
  togetherAt: number
  roundAt: number
}

/**
 * Agrees on the load of nodes among the processes that measure them. Rules by load affect everyone, so one process'
 * word counts only as far as the others confirm it: a node's slots are those that most of them name, its CPU and
 * commands are medians. Of two answers, the lower CPU and the higher command count apply, which make a node look
 * calmer.
 */
export class LoadWitnesses {
  readonly #cases = new Map<string, Case>()

  /** Records what `witness` says about a cluster, one of `asked` processes; returns the figures to use now. */
  take(redisClusterId: string, nodes: readonly NodeLoad[], witness: object, asked: number, now: number): NodeLoad[] {
    if (asked < 2) {
      this.#cases.delete(redisClusterId)
      return [...nodes]
    }
    const known = this.#cases.get(redisClusterId) ?? { testimonies: new Map(), togetherAt: now, roundAt: -roundMs }
    this.#cases.set(redisClusterId, known)
    known.testimonies.set(witness, { nodes, at: now })
    for (const [one, { at }] of known.testimonies) if (now - at > freshMs) known.testimonies.delete(one)
    if (known.testimonies.size > 1) known.togetherAt = now
    else if (now - known.togetherAt < aloneMs) return []
    if (now - known.roundAt < roundMs) return []
    known.roundAt = now
    return agreed([...known.testimonies.values()].map((testimony) => testimony.nodes))
  }

  /** The other clusters are no longer measured. */
  keep(clusters: ReadonlySet<string>): void {
    for (const id of this.#cases.keys()) if (!clusters.has(id)) this.#cases.delete(id)
  }
}

/** The nodes that more than half report with the same slots. */
function agreed(testimonies: readonly (readonly NodeLoad[])[]): NodeLoad[] {
  const bySlots = new Map<string, NodeLoad[]>()
  for (const nodes of testimonies) {
    const own = new Map(nodes.map((node) => [JSON.stringify(node.slots ?? [[0, slotCount - 1]]), node]))
    for (const [slots, node] of own) bySlots.set(slots, [...(bySlots.get(slots) ?? []), node])
  }
  return [...bySlots.values()].flatMap((samples) => (samples.length * 2 > testimonies.length ? [middle(samples)] : []))
}

/** Each figure is a separate median: a process in the middle for one may lie about another. */
function middle(samples: readonly NodeLoad[]): NodeLoad {
  const withCpu = samples.filter(({ cpuMs }) => cpuMs !== undefined)
  const alike = withCpu.length * 2 >= samples.length ? withCpu : samples.filter(({ cpuMs }) => cpuMs === undefined)
  const { cpuMs, commands, problem, ...first } = alike[0]!
  const spanMs = 1000
  const rates = alike.flatMap((one) => (one.commands === undefined ? [] : [(one.commands * spanMs) / one.spanMs]))
  const cpus = alike.flatMap((one) => (one.cpuMs === undefined ? [] : [(one.cpuMs * spanMs) / one.spanMs]))
  return {
    ...first,
    spanMs,
    roundTripMs: lowerMedian(alike.map(({ roundTripMs }) => roundTripMs)),
    ...(cpus.length > 0 && { cpuMs: lowerMedian(cpus) }),
    ...(rates.length > 0 && { commands: -lowerMedian(rates.map((rate) => -rate)) }),
    ...(problem !== undefined && { problem }),
  }
}

function lowerMedian(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[Math.floor((numbers.length - 1) / 2)]!
}
