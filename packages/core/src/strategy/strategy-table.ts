import { keyText, parseKeyText } from '../keys/key-text.ts'
import type { Rule } from '../rules/rule.ts'
import type { Strategy, TableEntry } from './strategy.ts'

/**
 * The strategy table: the versioned list of hot keys that a hub sends to the shields of the services that touch them.
 *
 * A shield gets a snapshot when it connects and deltas after that. `epoch` identifies the hub's store: a hub whose
 * store was reset starts a new epoch, and its table is trusted although its version is lower. A delta only applies to
 * the version it was made from; anything else is a gap, and the shield asks for a snapshot.
 */
export interface TableSnapshot {
  readonly epoch: string
  readonly version: number
  readonly entries: readonly TableEntry[]
  /** The rules of the service, for the fast path. */
  readonly rules: readonly Rule[]
  /** True while the kill switch is on: every shield passes everything through. */
  readonly isOff: boolean
  /** Further entries of the same version follow in the next message; only to sensors that take parts. */
  readonly hasMore?: boolean
}

/** The change from one version to another. */
export interface TableDelta {
  readonly epoch: string
  readonly from: number
  readonly to: number
  readonly set: readonly TableEntry[]
  readonly removed: readonly { readonly redisClusterId: string; readonly key: string }[]
  /** Present when the rules changed. */
  readonly rules?: readonly Rule[]
  readonly isOff?: boolean
}

/** The result of applying a message to a table. */
export type ApplyResult = { readonly kind: 'applied' } | { readonly kind: 'known' } | { readonly kind: 'gap' }

/** A shield's copy of the table. */
export class StrategyTable {
  #epoch = ''
  #version = 0
  #rules: readonly Rule[] = []
  #isOff = false
  /** By cluster and key: an id combining both would be one more string for each entry. */
  readonly #clusters = new Map<string, Map<string, TableEntry>>()

  get epoch(): string {
    return this.#epoch
  }

  get version(): number {
    return this.#version
  }

  get rules(): readonly Rule[] {
    return this.#rules
  }

  get isOff(): boolean {
    return this.#isOff
  }

  get size(): number {
    let size = 0
    for (const entries of this.#clusters.values()) size += entries.size
    return size
  }

  get(redisClusterId: string, key: string): TableEntry | undefined {
    return this.#clusters.get(redisClusterId)?.get(key)
  }

  *entries(): Generator<TableEntry> {
    for (const entries of this.#clusters.values()) yield* entries.values()
  }

  /**
   * Replaces the table with a snapshot. One of the same epoch with a lower version is an old message and is ignored.
   */
  applySnapshot(snapshot: TableSnapshot): ApplyResult {
    if (snapshot.epoch === this.#epoch && snapshot.version < this.#version) return { kind: 'known' }
    this.#epoch = snapshot.epoch
    this.#version = snapshot.version
    this.#rules = snapshot.rules
    this.#isOff = snapshot.isOff
    this.#clusters.clear()
    for (const entry of snapshot.entries) this.#set(entry)
    return { kind: 'applied' }
  }

  /** Applies a delta that fits; a gap leaves the table unchanged. */
  applyDelta(delta: TableDelta): ApplyResult {
    if (delta.epoch !== this.#epoch || delta.from > this.#version) return { kind: 'gap' }
    if (delta.to <= this.#version) return { kind: 'known' }
    if (delta.from !== this.#version) return { kind: 'gap' }
    for (const { redisClusterId, key } of delta.removed) this.#clusters.get(redisClusterId)?.delete(key)
    for (const entry of delta.set) this.#set(entry)
    if (delta.rules !== undefined) this.#rules = delta.rules
    if (delta.isOff !== undefined) this.#isOff = delta.isOff
    this.#version = delta.to
    return { kind: 'applied' }
  }

  #set(entry: TableEntry): void {
    const { redisClusterId, key } = entry
    const entries = this.#clusters.get(redisClusterId)
    if (entries === undefined) this.#clusters.set(redisClusterId, new Map([[key, entry]]))
    else entries.set(key, entry)
  }

  snapshot(): TableSnapshot {
    const entries: TableEntry[] = []
    for (const own of this.#clusters.values()) for (const entry of own.values()) entries.push(entry)
    return {
      epoch: this.#epoch,
      version: this.#version,
      entries,
      rules: this.#rules,
      isOff: this.#isOff,
    }
  }
}

/** A list of strategies with their keys, in the JSON form used by config centres and shown to users. */
export type StrategyList = readonly Record<string, unknown>[]

/** The entries grouped by strategy; keys are written as key text, so that bytes survive JSON. */
export function toStrategyList(entries: Iterable<TableEntry>): StrategyList {
  const groups = new Map<string, { strategy: Strategy; keys: string[] }>()
  const copies: Record<string, readonly string[]> = {}
  // What the current names were derived from, for shields that compute the placement themselves.
  const wanted: Record<string, readonly string[]> = {}
  for (const { key, strategy } of entries) {
    if (strategy.strategy === 'RedundantKeys') {
      copies[keyText(key)] = (strategy.placed ?? strategy.copies).map(keyText)
      if (strategy.placed !== undefined) wanted[keyText(key)] = strategy.copies.map(keyText)
      continue
    }
    const id = JSON.stringify(strategy)
    const group = groups.get(id)
    if (group === undefined) groups.set(id, { strategy, keys: [keyText(key)] })
    else group.keys.push(keyText(key))
  }
  const list: Record<string, unknown>[] = [...groups.values()].map(({ strategy, keys }) => ({
    ...strategy,
    keys: keys.sort(),
  }))
  if (Object.keys(copies).length > 0) {
    list.push({ strategy: 'RedundantKeys', keys: copies, ...(Object.keys(wanted).length > 0 && { wanted }) })
  }
  return list
}

/** An entry for JSON: the key as text. */
export function entryToJson(entry: TableEntry): TableEntry {
  return { ...entry, key: keyText(entry.key) }
}

/** An entry from JSON; undefined if its key is not valid key text. */
export function entryFromJson(entry: TableEntry): TableEntry | undefined {
  const key = parseKeyText(entry.key)
  return key === undefined ? undefined : { ...entry, key }
}
