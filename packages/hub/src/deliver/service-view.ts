import {
  encodeJsonFrame,
  entryId,
  entryToJson,
  type TableDelta,
  type TableEntry,
  type TableSnapshot,
} from '@firebreak/core'
import type { Rule } from '@firebreak/core/rules'
import { bytesOf, maxPartBytes } from './table-parts.ts'

/** A sensor that listens to its service's table. */
export interface TableListener {
  /** The table changed; `frame` is the delta ready to send, the same bytes for all. */
  onDelta(delta: TableDelta, frame: Uint8Array): void
}

/** What to send about a key: its entry, or that it has none. */
type Change = { readonly redisClusterId: string; readonly key: string; readonly entry: TableEntry | undefined }

/**
 * The strategy table of one service: the entries of keys that the service touches.
 *
 * Its version is the hub's at its last change, so all sensors of a service are always at the same version, whenever they
 * joined, and one delta serves them all.
 */
export class ServiceView {
  readonly listeners = new Set<TableListener>()
  /** False while only readers have named the service: it may be a typo, so nobody else is told. */
  isKnown = false
  version: number
  rules: readonly Rule[]
  readonly #entries = new Map<string, TableEntry>()
  readonly #changes = new Map<string, Change>()
  #areRulesNew = false
  #isSwitchNew = false

  constructor(version: number, rules: readonly Rule[]) {
    this.version = version
    this.rules = rules
  }

  get isChanged(): boolean {
    return this.#changes.size > 0 || this.#areRulesNew || this.#isSwitchNew
  }

  get isEmpty(): boolean {
    return this.#entries.size === 0
  }

  entries(): Iterable<TableEntry> {
    return this.#entries.values()
  }

  has(redisClusterId: string, key: string): boolean {
    return this.#entries.has(entryId(redisClusterId, key))
  }

  set(entry: TableEntry): void {
    const { redisClusterId, key } = entry
    const id = entryId(redisClusterId, key)
    this.#entries.set(id, entry)
    this.#changes.set(id, { redisClusterId, key, entry })
  }

  /** Announces that the key has no entry, even if it had none: a process may have acted on its own. */
  remove(redisClusterId: string, key: string): void {
    const id = entryId(redisClusterId, key)
    this.#entries.delete(id)
    this.#changes.set(id, { redisClusterId, key, entry: undefined })
  }

  setRules(rules: readonly Rule[]): void {
    this.rules = rules
    this.#areRulesNew = true
  }

  switched(): void {
    this.#isSwitchNew = true
  }

  snapshot(epoch: string, isOff: boolean): TableSnapshot {
    const entries = [...this.#entries.values()].map(entryToJson)
    return { epoch, version: this.version, entries, rules: this.rules, isOff }
  }

  /** Brings the view to `version` and notifies its listeners of the changes: all of them, or as many as a frame may hold. */
  flush(epoch: string, version: number, isOff: boolean): void {
    const changes = this.#takeChanges()
    const delta: TableDelta = {
      epoch,
      from: this.version,
      to: version,
      set: changes.flatMap(({ entry }) => (entry === undefined ? [] : [entryToJson(entry)])),
      removed: changes
        .filter(({ entry }) => entry === undefined)
        .map(({ redisClusterId, key }) => entryToJson({ redisClusterId, key } as TableEntry)),
      ...(this.#areRulesNew && { rules: this.rules }),
      ...(this.#isSwitchNew && { isOff }),
    }
    this.version = version
    this.#areRulesNew = false
    this.#isSwitchNew = false
    if (this.listeners.size === 0) return
    const frame = encodeJsonFrame('delta', version, delta)
    for (const listener of this.listeners) listener.onDelta(delta, frame)
  }

  #takeChanges(): Change[] {
    const taken: Change[] = []
    let bytes = 0
    for (const [id, change] of this.#changes) {
      if (bytes > maxPartBytes) break
      bytes += change.entry === undefined ? 100 + change.key.length * 3 : bytesOf(change.entry)
      taken.push(change)
      this.#changes.delete(id)
    }
    return taken
  }
}
