import { entryId, type TableEntry, type TableSnapshot } from '@firebreak/core'
import type { Rule, RuleSet } from '@firebreak/core/rules'
import type { DecisionSink } from '../decide/decider.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { EntryName, StoredEntry } from '../store/hub-store.ts'
import { ServiceView, type TableListener } from './service-view.ts'

/** What the delivery starts from. */
export interface TableDeliveryOptions {
  readonly epoch: string
  readonly version: number
  readonly isOff: boolean
  /** Told of each change that a restart must not lose. */
  readonly persist: (set: readonly StoredEntry[], removed: readonly EntryName[]) => void
  /** Told of each new version. */
  readonly onVersion: (version: number) => void
}

const maxServices = 10_000

/**
 * The hub's strategy table: one view per service, one version counter for all.
 *
 * An entry stands in the views of the services that touch its key, and enters a view as soon as the service is first
 * seen touching it. Changes wait for `flush`, which sends one delta per changed service; the collector flushes at the end
 * of each report, so a crossing leaves the hub in the same turn in which it was seen.
 */
export class TableDelivery implements DecisionSink {
  readonly epoch: string
  #version: number
  /** True where a config centre carries the table to processes that have no link to a hub. */
  isPublished = false
  #isOff: boolean
  #rules: readonly Rule[] = []
  readonly #views = new Map<string, ServiceView>()
  readonly #entries = new Map<HeatTrack, TableEntry>()
  /** How many entries each key has: one for every rule that it is hot by. */
  readonly #hotKeys = new Map<string, number>()
  readonly #options: TableDeliveryOptions
  /** Entries that changed since they were last saved; the value tells which it was. */
  #toSave = new Map<HeatTrack, TableEntry>()

  constructor(options: TableDeliveryOptions) {
    this.#options = options
    this.epoch = options.epoch
    this.#version = options.version
    this.#isOff = options.isOff
  }

  get version(): number {
    return this.#version
  }

  get isOff(): boolean {
    return this.#isOff
  }

  /** Every entry of the table, whoever touches it. */
  entries(): Iterable<TableEntry> {
    return this.#entries.values()
  }

  /** True where the key has an entry under any rule. */
  has(redisClusterId: string, key: string): boolean {
    return this.#hotKeys.has(entryId(redisClusterId, key))
  }

  get size(): number {
    return this.#entries.size
  }

  /** The table of each service. */
  services(): Iterable<readonly [string, ServiceView]> {
    return this.#views
  }

  /** A limit holds in the process that alone has counted the key, and in others once a second one has: one that lies limits itself. */
  set(track: HeatTrack, decided: TableEntry): void {
    const entry = narrowed(track, decided)
    if (!this.#entries.has(track)) this.#countKey(track, 1)
    this.#entries.set(track, entry)
    this.#toSave.set(track, entry)
    for (const service of track.services) this.view(service).set(entry)
  }

  /** A second process has counted the key: what is done for it holds for all. */
  widen(track: HeatTrack): void {
    const entry = this.#entries.get(track)
    if (entry?.onlyInstance === undefined) return
    const { onlyInstance: _, ...wide } = entry
    this.set(track, wide)
  }

  remove(track: HeatTrack): void {
    const entry = this.#entries.get(track)
    if (entry === undefined) return
    this.#entries.delete(track)
    this.#countKey(track, -1)
    this.#toSave.set(track, entry)
    for (const service of track.services) this.view(service).remove(track.redisClusterId, track.key)
  }

  /** A service touches the key for the first time. */
  addService(track: HeatTrack, serviceId: string): void {
    track.addService(serviceId)
    const entry = this.#entries.get(track)
    if (entry === undefined) return
    this.#toSave.set(track, entry)
    this.view(serviceId).set(entry)
  }

  /** A service has another rule for the key now. */
  removeService(track: HeatTrack, serviceId: string): void {
    track.removeService(serviceId)
    const entry = this.#entries.get(track)
    if (entry === undefined) return
    this.#toSave.set(track, entry)
    this.view(serviceId).remove(track.redisClusterId, track.key)
  }

  /** A process acted on the key without reason; its service is told that there is no entry, unless there is one. */
  takeBack(serviceId: string, redisClusterId: string, key: string): void {
    if (this.view(serviceId).has(redisClusterId, key)) return
    this.view(serviceId).remove(redisClusterId, key)
  }

  setRules(rules: RuleSet): void {
    this.#rules = rules.rules
    for (const [serviceId, view] of this.#views) {
      const next = rulesOf(this.#rules, serviceId)
      if (JSON.stringify(next) !== JSON.stringify(view.rules)) view.setRules(next)
    }
  }

  setOff(isOff: boolean): void {
    if (isOff === this.#isOff) return
    this.#isOff = isOff
    for (const view of this.#views.values()) view.switched()
  }

  /** Sends what changed since the last flush. */
  flush(): void {
    if (this.#toSave.size > 0) this.#save()
    const changed = [...this.#views.values()].filter(({ isChanged }) => isChanged)
    if (changed.length === 0) return
    this.#version++
    this.#options.onVersion(this.#version)
    for (const view of changed) view.flush(this.epoch, this.#version, this.#isOff)
  }

  /** Joins a sensor to its service's table; what it gets first, and how it leaves. */
  join(serviceId: string, listener: TableListener): { readonly snapshot: TableSnapshot; leave(): void } {
    // Nothing may be pending when a snapshot is made: its version would hide it.
    this.flush()
    const view = this.view(serviceId)
    view.listeners.add(listener)
    return { snapshot: view.snapshot(this.epoch, this.#isOff), leave: () => void view.listeners.delete(listener) }
  }

  snapshot(serviceId: string): TableSnapshot {
    this.flush()
    return this.view(serviceId).snapshot(this.epoch, this.#isOff)
  }

  view(serviceId: string): ServiceView {
    let view = this.#views.get(serviceId)
    if (view === undefined) {
      if (this.#views.size >= maxServices) this.#dropUnused()
      view = new ServiceView(this.#version, rulesOf(this.#rules, serviceId))
      this.#views.set(serviceId, view)
    }
    return view
  }

  #countKey({ redisClusterId, key }: HeatTrack, change: 1 | -1): void {
    const id = entryId(redisClusterId, key)
    const count = (this.#hotKeys.get(id) ?? 0) + change
    if (count > 0) this.#hotKeys.set(id, count)
    else this.#hotKeys.delete(id)
  }

  #save(): void {
    const set: StoredEntry[] = []
    const removed: EntryName[] = []
    for (const [track, { redisClusterId, key, ruleId }] of this.#toSave) {
      const entry = this.#entries.get(track)
      if (entry === undefined) removed.push({ redisClusterId, key, ruleId })
      else set.push({ entry, services: [...track.services] })
    }
    this.#toSave = new Map()
    this.#options.persist(set, removed)
  }

  #dropUnused(): void {
    for (const [serviceId, view] of this.#views) {
      if (view.listeners.size === 0) this.#views.delete(serviceId)
    }
  }
}

/**
 * The rules that travel with a service's table. Those in shadow mode too: they act nowhere, but a key that they win must
 * not be acted on under a rule of lower priority.
 */
function rulesOf(rules: readonly Rule[], serviceId: string): readonly Rule[] {
  return rules.filter((rule) => rule.serviceId === '*' || rule.serviceId === serviceId)
}

function narrowed(track: HeatTrack, { onlyInstance: _, ...entry }: TableEntry): TableEntry {
  const onlyInstance = entry.strategy.strategy === 'RateLimit' ? track.soleReporter : undefined
  return onlyInstance === undefined ? entry : { ...entry, onlyInstance }
}
