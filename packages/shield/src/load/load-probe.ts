import type { NodeLoad, ProbePayload, Runtime } from '@firebreak/core'
import type { Trouble } from '../trouble/trouble.ts'
import type { Upstream } from '../watcher/upstream.ts'
import { NodeSampler } from './node-sampler.ts'

export interface LoadProbeOptions {
  readonly runtime: Runtime
  readonly trouble: Trouble
  /** The Redis with a cluster's name, if this process uses it. */
  readonly upstreamOf: (redisClusterId: string) => Upstream | undefined
  readonly send: (nodes: readonly NodeLoad[]) => void
}

/** Measuring stops after this long without a renewed request from the hub. */
const leaseMs = 10_000
const slotCount = 16_384
/** Maximum number of nodes measured in one cluster. */
const maxNodes = 1000
const leastEveryMs = 200
const secondLookMs = 250

/** Measures the load of Redis nodes while a hub asks for it; hubs ask only one or two processes. */
export class LoadProbe {
  readonly #options: LoadProbeOptions
  readonly #samplers = new Map<string, NodeSampler>()
  #clusters: readonly string[] = []
  #everyMs = 1000
  #until = Number.NEGATIVE_INFINITY
  #sampledAt = Number.NEGATIVE_INFINITY

  constructor(options: LoadProbeOptions) {
    this.#options = options
  }

  /** Sets what the hub wants measured from now on. */
  ask({ redisClusterIds, everyMs }: ProbePayload): void {
    this.#clusters = redisClusterIds
    this.#everyMs = Math.max(leastEveryMs, everyMs)
    this.#until = this.#options.runtime.clock.now() + leaseMs
    if (redisClusterIds.length === 0) this.close()
  }

  /** Called often; measures when it is time. */
  tick(): void {
    const now = this.#now()
    if (now >= this.#until) {
      if (this.#samplers.size > 0) this.close()
      return
    }
    if (now - this.#sampledAt < this.#everyMs) return
    this.#sampledAt = now
    this.#sample().catch((error) => this.#options.trouble.failed(error))
  }

  close(): void {
    this.#until = Number.NEGATIVE_INFINITY
    for (const sampler of this.#samplers.values()) sampler.close()
    this.#samplers.clear()
  }

  #now(): number {
    return this.#options.runtime.clock.now()
  }

  async #sample(): Promise<void> {
    const used = new Set<string>()
    const samples = this.#clusters.flatMap((redisClusterId) => {
      const upstream = this.#options.upstreamOf(redisClusterId)
      if (upstream === undefined) return []
      return [...nodesOf(upstream)].map(async ([node, slots]): Promise<NodeLoad[]> => {
        const id = `${redisClusterId} ${node}`
        used.add(id)
        const sample = await this.#sampler(id, node, upstream).sample()
        return sample === undefined ? [] : [{ redisClusterId, node, ...(slots && { slots }), ...sample }]
      })
    })
    for (const [id, sampler] of this.#samplers) {
      if (used.has(id)) continue
      sampler.close()
      this.#samplers.delete(id)
    }
    const nodes = (await Promise.all(samples)).flat()
    if (nodes.length > 0) this.#options.send(nodes)
    // Counters only mean something after a second reading, so that one follows soon.
    else if (samples.length > 0) this.#sampledAt = Math.min(this.#sampledAt, this.#now() - this.#everyMs + secondLookMs)
  }

  #sampler(id: string, node: string, upstream: Upstream): NodeSampler {
    let sampler = this.#samplers.get(id)
    if (sampler === undefined) {
      sampler = new NodeSampler(node, upstream, this.#options.runtime, this.#options.trouble)
      this.#samplers.set(id, sampler)
    }
    return sampler
  }
}

/** The masters with their slots; without slots if one owns all. */
function nodesOf(upstream: Upstream): Map<string, [number, number][] | undefined> {
  if (!upstream.isCluster) {
    const node = upstream.nodeOf(0)
    return new Map(node === undefined ? [] : [[node, undefined]])
  }
  const nodes = new Map<string, [number, number][]>()
  let open: [number, number] | undefined
  let owner: string | undefined
  for (let slot = 0; slot < slotCount; slot++) {
    const node = upstream.nodeOf(slot)
    if (node !== undefined && node === owner) {
      open![1] = slot
      continue
    }
    owner = node
    if (node === undefined) continue
    open = [slot, slot]
    const known = nodes.get(node)
    if (known !== undefined) known.push(open)
    else if (nodes.size < maxNodes) nodes.set(node, [open])
  }
  return nodes
}
