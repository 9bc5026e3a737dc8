import type { TimerHandle } from '@firebreak/core'
import { readClusterSlots, SlotMap } from '@firebreak/core/commands'
import type { ConnectTarget } from '../transport/transport.ts'
import { askOnce } from '../upstream/ask-once.ts'
import type { Identity } from '../upstream/identity.ts'
import { type NodeSettings, UpstreamNode } from '../upstream/upstream-node.ts'
import type { UpstreamTopology } from '../upstream/upstream-topology.ts'

const refreshGapMs = 50
const demotedGraceMs = 1000

/**
 * Tracks the nodes of a cluster and which slots they serve: from CLUSTER SLOTS of any node that answers, and
 * immediately from every MOVED.
 */
export class ClusterTopology implements UpstreamTopology {
  readonly isSpread = true
  readonly #seeds: readonly ConnectTarget[]
  readonly #identity: Identity
  readonly #settings: NodeSettings
  readonly #nodes = new Map<string, UpstreamNode>()
  readonly #map = new SlotMap<UpstreamNode>()
  #masters: UpstreamNode[] = []
  #refreshing: Promise<void> | undefined
  #refreshedMs = 0
  readonly #timer: TimerHandle
  #isClosed = false
  readonly #demoted = new Map<UpstreamNode, TimerHandle>()
  /** Called whenever slots change owners. */
  onChange: (() => void) | undefined

  constructor(seeds: readonly ConnectTarget[], identity: Identity, settings: NodeSettings) {
    this.#seeds = seeds
    this.#identity = identity
    this.#settings = settings
    for (const seed of seeds) this.#nodeAt(seed.host, seed.port)
    this.#timer = settings.runtime.timers.setInterval(() => void this.refresh(), 5000)
  }

  /** The masters in the order of their first slots; before any map is known, the first seed. */
  get masters(): readonly UpstreamNode[] {
    return this.#masters.length > 0 ? this.#masters : [this.#nodeAt(this.#seeds[0]!.host, this.#seeds[0]!.port)]
  }

  get nodes(): Iterable<UpstreamNode> {
    return this.#nodes.values()
  }

  get homeSlots(): readonly number[] {
    const slots = this.#map.firstSlots()
    return slots.length > 0 ? slots : [0]
  }

  nodeOf(slot: number): UpstreamNode {
    return this.#map.ownerOf(slot) ?? this.masters[0]!
  }

  /** Records a node's report of who owns a slot now. An empty host means the host of the node that was asked. */
  moved(slot: number, host: string, port: number, asked: UpstreamNode): UpstreamNode {
    const node = this.#nodeAt(host === '' ? asked.target.host : host, port)
    if (this.#map.ownerOf(slot) !== node) {
      this.#map.setOwner(slot, node)
      this.onChange?.()
    }
    void this.refresh()
    return node
  }

  nodeAt(host: string, port: number, asked: UpstreamNode): UpstreamNode {
    return this.#nodeAt(host === '' ? asked.target.host : host, port)
  }

  /** Asks the nodes one by one until one returns the slots. */
  refresh(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  close(): void {
    this.#isClosed = true
    this.#timer.cancel()
    for (const timer of this.#demoted.values()) timer.cancel()
    for (const node of this.#nodes.values()) node.close()
  }

  async #refresh(): Promise<void> {
    const { clock, timers } = this.#settings.runtime
    const waitMs = this.#refreshedMs + refreshGapMs - clock.now()
    if (waitMs > 0) await new Promise<void>((resolve) => timers.setTimeout(resolve, waitMs))
    const targets = [
      ...this.#masters.map(({ target }) => target),
      ...this.#seeds,
      ...[...this.#nodes.values()].map(({ target }) => target),
    ]
    const tried = new Set<string>()
    for (const target of targets) {
      const id = `${target.host}:${target.port}`
      if (tried.has(id) || this.#isClosed) continue
      tried.add(id)
      try {
        const settings = { ...this.#settings, connectWaitMs: 300 }
        const reply = await askOnce(target, this.#identity, settings, ['CLUSTER', 'SLOTS'])
        const ranges = readClusterSlots(reply, target.host)
        if (ranges.length === 0) continue
        this.#take(
          ranges.map(({ first, last, master }) => ({ first, last, node: this.#nodeAt(master.host, master.port) })),
        )
        this.#refreshedMs = clock.now()
        return
      } catch {
        // The next one may know.
      }
    }
    this.#refreshedMs = clock.now()
  }

  #take(ranges: readonly { first: number; last: number; node: UpstreamNode }[]): void {
    const before = this.#masters
    const owners = this.#map.owners()
    this.#map.replace(ranges)
    this.#masters = this.#map.owners()
    for (const node of this.#masters) this.#keep(node)
    for (const node of before) if (!this.#masters.includes(node)) this.#drop(node)
    if (owners.length !== this.#masters.length || owners.some((node, index) => node !== this.#masters[index]))
      this.onChange?.()
  }

  #keep(node: UpstreamNode): void {
    this.#demoted.get(node)?.cancel()
    this.#demoted.delete(node)
  }

  /** A node that no longer serves slots may hang with requests that nobody will answer. */
  #drop(node: UpstreamNode): void {
    const timer = this.#settings.runtime.timers.setTimeout(() => {
      this.#demoted.delete(node)
      node.loseAll('it no longer serves any slot')
    }, demotedGraceMs)
    this.#demoted.set(node, timer)
  }

  #nodeAt(host: string, port: number): UpstreamNode {
    const id = `${host}:${port}`
    let node = this.#nodes.get(id)
    if (node === undefined) {
      node = new UpstreamNode({ ...this.#seeds[0]!, host, port }, this.#settings)
      this.#nodes.set(id, node)
    }
    return node
  }
}
