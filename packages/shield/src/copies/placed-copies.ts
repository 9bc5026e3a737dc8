import { copyName, maxCopies, type RedundantKeysStrategy } from '@firebreak/core'
import type { CopiedKey, CopyMeans } from './copied-key.ts'
import type { CopyServers } from './copy-servers.ts'
import { byNode, isInPlace, type PlacedCopy, placeCopies, recentNodesOf } from './place-copies.ts'

/** Random picks before the copies are tried one by one. */
const pickAttempts = 16

/** Where the copies of a key are, and which of them can be read. */
export class PlacedCopies {
  readonly #key: CopiedKey
  readonly #means: CopyMeans
  readonly #servers: CopyServers
  readonly #strategy: RedundantKeysStrategy
  #copies: readonly PlacedCopy[] = []
  #byNode: readonly (readonly PlacedCopy[])[] = []
  #placedFor = ''
  readonly #foreign = new Set<string>()

  constructor(key: CopiedKey, means: CopyMeans, servers: CopyServers, strategy: RedundantKeysStrategy) {
    this.#key = key
    this.#means = means
    this.#servers = servers
    this.#strategy = strategy
  }

  /** Names and nodes of the copies in use. */
  get all(): readonly PlacedCopy[] {
    return this.#copies
  }

  /**
   * Recomputes the placement after nodes or slots have moved; returns the copies that are no longer used, undefined if
   * nothing moved.
   */
  place(): readonly PlacedCopy[] | undefined {
    const { upstream } = this.#key.space
    const nodeOf = (slot: number) => upstream.nodeOf(slot)
    const nodes = recentNodesOf(upstream, this.#means.runtime.clock.now())
    const placedFor = nodes.join() + nodeOf(this.#key.slot)
    if (placedFor === this.#placedFor && this.#copies.every((copy) => isInPlace(copy, nodeOf))) return undefined
    this.#placedFor = placedFor
    const before = this.#copies
    this.#copies = placeCopies(this.#names(nodes.length), nodeOf, nodes)
    this.#byNode = byNode(this.#copies)
    if (nodes.length === 1) {
      this.#means.trouble.note(
        'copies-one-node',
        `copies of ${this.#key.name} have no effect: there is only one node, and it serves all of them`,
      )
    }
    const names = new Set(this.#copies.map(({ name }) => name))
    return before.filter(({ name }) => !names.has(name))
  }

  /**
   * A copy that can be read. Picks a node first, then one of its copies, so that nodes share the reads evenly however
   * many copies each has, and a dead node's share is spread over all others.
   */
  pick(): PlacedCopy | undefined {
    for (let attempt = 0; attempt < pickAttempts && this.#byNode.length > 0; attempt++) {
      const copy = this.#oneOf(this.#oneOf(this.#byNode))
      if (this.#isReadable(copy)) return copy
    }
    return this.#copies.find((copy) => this.#isReadable(copy))
  }

  /** The base names of the copies: as many as the strategy has, or as there are nodes for. */
  #names(nodeCount: number): readonly string[] {
    const { copies, copiesPerNode, template } = this.#strategy
    if (copiesPerNode === undefined || template === undefined) return copies
    const length = Math.min(maxCopies, copiesPerNode * Math.max(1, nodeCount))
    return Array.from({ length }, (_, index) => copyName(template, this.#key.name, index + 1))
  }

  /** The server has answered whether we may write the name; a foreign key is not read either. */
  setForeign({ name }: PlacedCopy, isForeign: boolean): void {
    if (!isForeign) {
      this.#foreign.delete(name)
      return
    }
    if (this.#foreign.has(name)) return
    this.#foreign.add(name)
    this.#means.trouble.note(
      'copies-foreign',
      `${name} was not created by Firebreak: it is left alone and not used as a copy of ${this.#key.name}`,
    )
  }

  /** True if the server has reported it as an application's own key. */
  isForeign({ name }: PlacedCopy): boolean {
    return this.#foreign.has(name)
  }

  #oneOf<Item>(items: readonly Item[]): Item {
    return items[Math.floor(this.#means.runtime.random() * items.length)]!
  }

  #isReadable(copy: PlacedCopy): boolean {
    return !this.isForeign(copy) && this.#servers.canRead(copy.slot)
  }
}
