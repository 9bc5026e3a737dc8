import { keyText, parseKeyText } from '../keys/key-text.ts'
import { isInRollout } from '../rules/rollout.ts'
import type { Rule } from '../rules/rule.ts'
import type { Strategy, TableEntry } from './strategy.ts'
import type { TableSnapshot } from './strategy-table.ts'

/**
 * Keys that share a strategy, as stored in a config centre: the strategy's fields, the rule, and the keys as text. With
 * `RedundantKeys`, each key maps to the names of its copies in Redis; if those were placed by the slot map, `wanted`
 * has the names that they were derived from, for shields that compute the placement themselves.
 */
export interface PublishedGroup {
  readonly strategy: string
  readonly ruleId: string
  readonly keys: readonly string[] | Readonly<Record<string, readonly string[]>>
  readonly [field: string]: unknown
}

/** Groups by the cluster of their keys. */
export type PublishedClusters = Readonly<Record<string, readonly PublishedGroup[]>>

/** What a config centre stores for one service. */
export interface PublishedTable {
  readonly epoch: string
  readonly version: number
  /** True while the kill switch is on: no process acts on anything. */
  readonly isOff: boolean
  /** True if its hub is cut off from the shared store: it may not know that the switch was turned on. */
  readonly isAlone?: boolean
  /** When it was written, in milliseconds since 1970. */
  readonly writtenAt: number
  /** How long it may be trusted; an older table belongs to hubs that are gone. */
  readonly validUntil: number
  readonly clusters: PublishedClusters
  /** Entries for one process only, by its instance id: no other may act on them. */
  readonly only?: Readonly<Record<string, PublishedClusters>>
  /**
   * Entries for a fraction of the processes: those whose instance id and the group's rule fall within the percentage.
   */
  readonly rollouts?: readonly { readonly percent: number; readonly clusters: PublishedClusters }[]
  /** The service's rules, for processes with a shield. */
  readonly rules: readonly Rule[]
}

/** A published table as it applies to one process; the entries' keys are text, as in a hub's snapshot. */
export interface ReadTable {
  readonly snapshot: TableSnapshot
  readonly writtenAt: number
  readonly validUntil: number
  readonly isAlone: boolean
}

/** How often an unchanged table is republished. */
export const publishEveryMs = 20_000
/** How long a table is valid if its hub does not say when it was written: older versions did not. */
const publishedForMs = 60_000
/** A limit that is not renewed ends before the table does: after one missed renewal plus what a shield grants. */
const limitForMs = publishEveryMs + 10_000

/** Builds a service's table for a config centre, valid for `forMs`. */
export function toPublishedTable(
  { epoch, version, isOff, entries, rules }: TableSnapshot,
  { writtenAt, forMs, isAlone = false }: { writtenAt: number; forMs: number; isAlone?: boolean },
): PublishedTable {
  const all = new Map<string, Groups>()
  const only = new Map<string, Map<string, Groups>>()
  const rollouts = new Map<string, Map<string, Groups>>()
  for (const entry of entries) {
    const { onlyInstance, rollout } = entry
    if (onlyInstance !== undefined) addTo(getOrSet(only, onlyInstance), entry)
    else if (rollout !== undefined) addTo(getOrSet(rollouts, String(rollout)), entry)
    else addTo(all, entry)
  }
  return {
    epoch,
    version,
    isOff,
    ...(isAlone && { isAlone }),
    writtenAt,
    validUntil: writtenAt + forMs,
    clusters: toClusters(all),
    ...(only.size > 0 && { only: Object.fromEntries([...only].map(([id, clusters]) => [id, toClusters(clusters)])) }),
    ...(rollouts.size > 0 && {
      rollouts: [...rollouts].map(([percent, clusters]) => ({
        percent: Number(percent),
        clusters: toClusters(clusters),
      })),
    }),
    rules,
  }
}

/** Reads a service's table from a config centre for the process of this name; undefined if it is not a table. */
export function readPublishedTable(text: string, instanceId: string): ReadTable | undefined {
  let table: PublishedTable
  try {
    table = JSON.parse(text) as PublishedTable
  } catch {
    return undefined
  }
  const { epoch, version, validUntil, writtenAt = validUntil - publishedForMs } = table ?? {}
  if (typeof epoch !== 'string' || !Number.isFinite(version) || !Number.isFinite(validUntil)) return undefined
  const times = { since: writtenAt, until: validUntil, limitUntil: Math.min(validUntil, writtenAt + limitForMs) }
  const entries = [...entriesOf(table.clusters, times), ...entriesOf(table.only?.[instanceId], times)]
  for (const { percent, clusters } of Array.isArray(table.rollouts) ? table.rollouts : []) {
    for (const entry of entriesOf(clusters, times))
      if (isInRollout(entry.ruleId, percent, instanceId)) entries.push(entry)
  }
  const rules = Array.isArray(table.rules) ? table.rules : []
  const snapshot = { epoch, version, isOff: table.isOff === true, entries, rules }
  return { snapshot, writtenAt, validUntil, isAlone: table.isAlone === true }
}

/** Groups of one cluster, by what their entries have in common. */
type Groups = Map<
  string,
  {
    readonly fields: object
    readonly keys: Map<string, readonly string[] | undefined>
    readonly wanted: Map<string, readonly string[]>
  }
>

function addTo(clusters: Map<string, Groups>, { redisClusterId, key, strategy, ruleId }: TableEntry): void {
  const groups = getOrSet(clusters, redisClusterId)
  const { copies, placed, ...rest } = strategy as typeof strategy &
    Partial<Record<'copies' | 'placed', readonly string[]>>
  const fields = { ...rest, ruleId }
  const id = JSON.stringify(fields)
  const group = groups.get(id) ?? { fields, keys: new Map(), wanted: new Map() }
  groups.set(id, group)
  group.keys.set(keyText(key), (placed ?? copies)?.map(keyText))
  if (placed !== undefined && copies !== undefined) group.wanted.set(keyText(key), copies.map(keyText))
}

function toClusters(clusters: Map<string, Groups>): PublishedClusters {
  return Object.fromEntries(
    [...clusters].map(([redisClusterId, groups]) => [redisClusterId, [...groups.values()].map(toGroup)]),
  )
}

function toGroup({ fields, keys, wanted }: Groups extends Map<string, infer Group> ? Group : never): PublishedGroup {
  const sorted = [...keys].sort(([a], [b]) => (a < b ? -1 : 1))
  const hasCopies = sorted.some(([, copies]) => copies !== undefined)
  const listed = hasCopies ? Object.fromEntries(sorted) : sorted.map(([key]) => key)
  const made = wanted.size > 0 && { wanted: Object.fromEntries(wanted) }
  return { ...fields, keys: listed, ...made } as PublishedGroup
}

function* entriesOf(
  clusters: PublishedClusters | undefined,
  { since, until, limitUntil }: { readonly since: number; readonly until: number; readonly limitUntil: number },
): Generator<TableEntry> {
  if (!isObject(clusters)) return
  for (const [redisClusterId, groups] of Object.entries(clusters)) {
    for (const group of Array.isArray(groups) ? (groups as readonly PublishedGroup[]) : []) {
      if (!isObject(group)) continue
      const { keys, ruleId = '', wanted, ...strategy } = group
      const made = isObject(wanted) ? (wanted as Readonly<Record<string, unknown>>) : {}
      const isList = Array.isArray(keys)
      for (const [text, copies] of isList ? keys.map((key) => [key, undefined] as const) : Object.entries(keys ?? {})) {
        const own = made[text] ?? copies
        const names = Array.isArray(own) ? own.map((copy) => parseKeyText(String(copy))) : undefined
        yield {
          redisClusterId,
          key: String(text),
          // Unknown parts are filtered out along with anything else that a later hub may have written.
          strategy: { ...strategy, ...(names !== undefined && { copies: names }) } as unknown as Strategy,
          ruleId,
          reason: `hot by rule ${ruleId}, as the config centre says`,
          since,
          until: strategy.strategy === 'RateLimit' ? limitUntil : until,
        }
      }
    }
  }
}

function getOrSet<Inner>(map: Map<string, Map<string, Inner>>, key: string): Map<string, Inner> {
  const known = map.get(key)
  if (known !== undefined) return known
  const made = new Map<string, Inner>()
  map.set(key, made)
  return made
}

function isObject(value: unknown): value is object {
  return typeof value === 'object' && value !== null
}
