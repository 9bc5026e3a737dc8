import { keyBytes } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { Upstream } from '../watcher/upstream.ts'

/** One copy of a key: its name, and the node that it is on. */
export interface PlacedCopy {
  readonly name: string
  readonly bytes: Uint8Array
  readonly slot: number
  readonly node: string
}

const maxTries = 200

/**
 * Gives each copy a name on the node whose turn it is, so that the copies are spread evenly over the nodes that there
 * are now. A name that falls on another node gets `~1`, `~2` … until it fits; every process with the same map of slots
 * finds the same names. Braces are rounded: a hash tag would hold all copies on the key's own node.
 */
export function placeCopies(
  names: readonly string[],
  nodeOf: (slot: number) => string | undefined,
  nodes: readonly string[],
): PlacedCopy[] {
  const sorted = [...nodes].sort()
  const placed: PlacedCopy[] = []
  for (const [index, given] of names.entries()) {
    const base = given.replaceAll('{', '(').replaceAll('}', ')')
    const wanted = sorted[index % Math.max(1, sorted.length)]
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const name = attempt === 0 ? base : `${base}~${attempt}`
      const bytes = keyBytes(name)
      const slot = keySlotOfBytes(bytes)
      const node = nodeOf(slot)
      if (node === undefined || (node !== wanted && attempt < maxTries - 1)) continue
      placed.push({ name, bytes, slot, node })
      break
    }
  }
  return placed
}

/** The copies of each node that has any. */
export function byNode(copies: readonly PlacedCopy[]): PlacedCopy[][] {
  return [...Map.groupBy(copies, ({ node }) => node).values()]
}

/** The nodes that own slots, as the application sees them now. */
export function nodesOf(nodeOf: (slot: number) => string | undefined): string[] {
  const nodes = new Set<string>()
  // Every 16th slot: a node with fewer neighbouring slots than that has hardly a share of the load to take.
  for (let slot = 0; slot < 16384; slot += 16) {
    const node = nodeOf(slot)
    if (node !== undefined) nodes.add(node)
  }
  return [...nodes]
}

/** As `nodesOf`, sorted, and as of the last 50 ms: all copied keys of an upstream ask for them. */
export function recentNodesOf(upstream: Upstream, now: number): readonly string[] {
  const known = recent.get(upstream)
  if (known !== undefined && now >= known.at && now - known.at < recentMs) return known.nodes
  const nodes = nodesOf((slot) => upstream.nodeOf(slot)).sort()
  recent.set(upstream, { at: now, nodes })
  return nodes
}

const recentMs = 50
const recent = new WeakMap<Upstream, { readonly at: number; readonly nodes: readonly string[] }>()
