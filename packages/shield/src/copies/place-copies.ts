import { keyBytes, untagged } from '@firebreak/core'
import { keySlotOfBytes } from '@firebreak/core/commands'
import type { Upstream } from '../watcher/upstream.ts'

/** One copy of a key: its name, and its node. */
export interface PlacedCopy {
  readonly name: string
  readonly bytes: Uint8Array
  readonly slot: number
  readonly node: string
  /** The node whose turn it was, and the slots of the names before this one, none of which is on it. */
  readonly wanted: string | undefined
  readonly passedSlots: readonly number[]
}

const maxTries = 200

/**
 * Gives each copy a name on the node whose turn it is, so that the copies are spread evenly over the current nodes. A
 * name that falls on another node gets `~1`, `~2` … until it fits; every process with the same slot map finds the same
 * names. Braces become parentheses: a hash tag would keep all copies on the key's own node.
 */
export function placeCopies(
  names: readonly string[],
  nodeOf: (slot: number) => string | undefined,
  nodes: readonly string[],
): PlacedCopy[] {
  const sorted = [...nodes].sort()
  const placed: PlacedCopy[] = []
  for (const [index, given] of names.entries()) {
    const base = untagged(given)
    const wanted = sorted[index % Math.max(1, sorted.length)]
    const passedSlots: number[] = []
    for (let attempt = 0; attempt < maxTries; attempt++) {
      const name = attempt === 0 ? base : `${base}~${attempt}`
      const bytes = keyBytes(name)
      const slot = keySlotOfBytes(bytes)
      const node = nodeOf(slot)
      if (node !== undefined && (node === wanted || attempt === maxTries - 1)) {
        placed.push({ name, bytes, slot, node, wanted, passedSlots })
        break
      }
      passedSlots.push(slot)
    }
  }
  return placed
}

/** True while the slots that gave a copy its name are where they were: another process would find the same name. */
export function isInPlace(copy: PlacedCopy, nodeOf: (slot: number) => string | undefined): boolean {
  if (nodeOf(copy.slot) !== copy.node) return false
  return copy.wanted === undefined || copy.passedSlots.every((slot) => nodeOf(slot) !== copy.wanted)
}

/** The copies of each node that has any. */
export function byNode(copies: readonly PlacedCopy[]): PlacedCopy[][] {
  return [...Map.groupBy(copies, ({ node }) => node).values()]
}

/** The nodes that own slots, as the application currently sees them. */
export function nodesOf(nodeOf: (slot: number) => string | undefined): string[] {
  const nodes = new Set<string>()
  // Every 16th slot: a node with fewer neighbouring slots than that has hardly any load to take.
  for (let slot = 0; slot < 16384; slot += 16) {
    const node = nodeOf(slot)
    if (node !== undefined) nodes.add(node)
  }
  return [...nodes]
}

/** Like `nodesOf`, sorted and up to 50 ms old: all copied keys of an upstream ask for them. */
export function recentNodesOf(upstream: Upstream, now: number): readonly string[] {
  const known = recent.get(upstream)
  if (known !== undefined && now >= known.at && now - known.at < recentMs) return known.nodes
  const nodes = nodesOf((slot) => upstream.nodeOf(slot)).sort()
  recent.set(upstream, { at: now, nodes })
  return nodes
}

const recentMs = 50
const recent = new WeakMap<Upstream, { readonly at: number; readonly nodes: readonly string[] }>()
