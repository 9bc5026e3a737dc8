import type { BigKeys, TypeSummary } from './big-key-collector.ts'
import type { FoundKey } from './found-key.ts'
import type { PrefixNode } from './prefix-tree.ts'
import { TopList } from './top-list.ts'

/** Merges the results of several servers. */
export function mergeBigKeys(parts: readonly BigKeys[], top: number): BigKeys {
  if (parts.length === 1) return parts[0]!
  const types = new Map<string, TypeSummary[]>()
  for (const part of parts) {
    for (const summary of part.types) types.set(summary.type, [...(types.get(summary.type) ?? []), summary])
  }
  return {
    keys: heaviest(
      parts.flatMap(({ keys }) => keys),
      top,
      ({ bytes }) => bytes ?? 0,
    ),
    types: [...types.values()].map((summaries) => mergeTypes(summaries, top)).sort((a, b) => b.bytes - a.bytes),
    prefixes: mergePrefixes(parts.flatMap(({ prefixes }) => prefixes ?? [])),
    seen: sum(parts, ({ seen }) => seen),
  }
}

/** The heaviest keys of a list. */
export function heaviest(keys: readonly FoundKey[], top: number, weightOf: (key: FoundKey) => number): FoundKey[] {
  const list = new TopList<FoundKey>(top, ({ key }) => key)
  for (const key of keys) list.add(weightOf(key), key)
  return list.sorted()
}

function mergeTypes(summaries: readonly TypeSummary[], top: number): TypeSummary {
  return {
    type: summaries[0]!.type,
    keys: sum(summaries, ({ keys }) => keys),
    bytes: sum(summaries, ({ bytes }) => bytes),
    elements: sum(summaries, ({ elements }) => elements),
    ...ttlSum(summaries),
    byBytes: heaviest(
      summaries.flatMap(({ byBytes }) => byBytes),
      top,
      ({ bytes }) => bytes ?? 0,
    ),
    byElements: heaviest(
      summaries.flatMap(({ byElements }) => byElements),
      top,
      ({ elements }) => elements ?? 0,
    ),
  }
}

function mergePrefixes(nodes: readonly PrefixNode[]): PrefixNode | undefined {
  if (nodes.length === 0) return undefined
  const children = new Map<string, PrefixNode[]>()
  for (const child of nodes.flatMap((node) => node.children)) {
    children.set(child.prefix, [...(children.get(child.prefix) ?? []), child])
  }
  return {
    prefix: nodes[0]!.prefix,
    keys: sum(nodes, ({ keys }) => keys),
    bytes: sum(nodes, ({ bytes }) => bytes),
    elements: sum(nodes, ({ elements }) => elements),
    ...ttlSum(nodes),
    ...fieldsOf(nodes),
    children: [...children.values()].map((same) => mergePrefixes(same)!).sort((a, b) => b.bytes - a.bytes),
  }
}

function sum<Item>(items: readonly Item[], of: (item: Item) => number): number {
  return items.reduce((total, item) => total + of(item), 0)
}

/** A node without field names may have had too many. */
function fieldsOf(nodes: readonly PrefixNode[]): { fields?: readonly string[] } {
  if (nodes.some(({ fields }) => fields === undefined)) return {}
  return { fields: [...new Set(nodes.flatMap(({ fields }) => fields!))].sort() }
}

function ttlSum(items: readonly { readonly keysWithTtl?: number }[]): { keysWithTtl?: number } {
  if (items.some(({ keysWithTtl }) => keysWithTtl === undefined)) return {}
  return { keysWithTtl: sum(items, ({ keysWithTtl }) => keysWithTtl!) }
}
