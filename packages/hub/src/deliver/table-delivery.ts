import { entryId, type TableEntry, type TableSnapshot } from '@firebreak/core'
import type { Rule, RuleSet } from '@firebreak/core/rules'
import type { DecisionSink } from '../decide/decider.ts'
import type { HeatTrack } from '../heat/heat-track.ts'
import type { EntryName, StoredEntry } from '../store/hub-store.ts'
import { PlacedNames } from './placed-names.ts'
import { ServiceView, type TableListener } from './service-view.ts'

/** What the delivery starts from. */
export interface TableDeliveryOptions {
  readonly epoch: string
  readonly version: number
  readonly isOff: boolean
  /** Called for each change that must survive a restart. */
  readonly persist: (set: readonly StoredEntry[], removed: readonly EntryName[]) => void
  /** Called for each new version. */
  readonly onVersion: (version: number) => void
  /** Called for each new entry of the table, once it has been sent to the sensors. */
  readonly onDelivered?: (entry: TableEntry, services: readonly string[], sensors: number) => void
}

const maxServices = 10_000

/**
 * The hub's strategy table: one view per service, one version counter for all.
 *
 * An entry is in the views of the services that touch its key, and enters a view as soon as the service is first seen
 * touching it. Changes wait for `flush`, which sends one delta per changed service; the collector flushes at the end of
 * each report, so a crossing leaves the hub in the turn in which it was seen.
 */
export class TableDelivery implements DecisionSink {
  readonly epoch: string
  #version: number
  /** True if a config centre carries the table to processes without a link to a hub. */
  isPublished = false
  #isOff: boolean
  #rules: readonly Rule[] = []
  readonly #views = new Map<string, ServiceView>()
  readonly #entries = new Map<HeatTrack, TableEntry>()
  /** How many entries each key has: one for each rule that makes it hot. */
  readonly #hotKeys = new Map<string, number>()
  readonly #options: TableDeliveryOptions
  /** Entries changed since they were last saved, with their identity. */
  #toSave = new Map<HeatTrack, TableEntry>()
  readonly #placed = new PlacedNames()
  /** The entries of keys that have copies. */
  readonly #copied = new Map<string, Set<HeatTrack>>()
  /** Entries that have not been sent to any sensor yet. */
  readonly #fresh = new Set<HeatTrack>()

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

  /** Every entry of the table, whichever service touches it. */
  entries(): Iterable<TableEntry> {
    return this.#entries.values()
  }

  /** True if the key has an entry under any rule. */
  has(redisClusterId: string, key: string): boolean {
    return this.#hotKeys.has(entryId(redisClusterId, key))
  }

  get size(): number {
    return this.#entries.size
  }

  /** The table of each service that has had a sensor or a hot key. */
  *services(): Generator<readonly [string, ServiceView]> {
    for (const named of this.#views) if (named[1].isKnown) yield named
  }

  /**
   * A limit applies only in the process that alone has counted the key, and in others once a second process has: a
   * process that lies only limits itself.
   */
  set(track: HeatTrack, decided: TableEntry): void {
    const entry = this.#placed.in(this.#rolledOut(narrowed(track, decided)))
    this.#noteCopied(track, entry.strategy.strategy === 'RedundantKeys')
    if (!this.#entries.has(track)) {
      this.#countKey(track, 1)
      this.#fresh.add(track)
    }
    this.#entries.set(track, entry)
    this.#toSave.set(track, entry)
    for (const service of track.services) this.#known(service).set(entry)
  }

  /** A process reports the names of a key's copies in Redis. */
  setPlaced(redisClusterId: string, key: string, names: readonly string[], isRefresher: boolean, now: number): void {
    const tracks = this.#copied.get(entryId(redisClusterId, key))
    const first = tracks?.values().next().value
    if (tracks === undefined || first === undefined || names.length === 0) return
    if (!this.#placed.tell(this.#entries.get(first)!, names, isRefresher, now)) return
    for (const track of tracks) this.set(track, this.#entries.get(track)!)
    this.flush()
  }

  #noteCopied(track: HeatTrack, isCopied: boolean): void {
    const id = entryId(track.redisClusterId, track.key)
    const tracks = this.#copied.get(id)
    if (isCopied) {
      if (tracks === undefined) this.#copied.set(id, new Set([track]))
      else tracks.add(track)
      return
    }
    if (tracks?.delete(track) !== true || tracks.size > 0) return
    this.#copied.delete(id)
    this.#placed.forget(track.redisClusterId, track.key)
  }

  /** A second process has counted the key: its handling now applies to all. */
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
    this.#noteCopied(track, false)
    this.#fresh.delete(track)
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
    this.#known(serviceId).set(entry)
  }

  /** A service now has another rule for the key. */
  removeService(track: HeatTrack, serviceId: string): void {
    track.removeService(serviceId)
    const entry = this.#entries.get(track)
    if (entry === undefined) return
    this.#toSave.set(track, entry)
    this.view(serviceId).remove(track.redisClusterId, track.key)
  }

  /** A process acted on the key without cause: unless there is an entry, its service is told that there is none. */
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
    for (const [track, entry] of this.#entries) {
      if (this.#rolledOut(entry).rollout !== entry.rollout) this.set(track, entry)
    }
  }

  setOff(isOff: boolean): void {
    if (isOff === this.#isOff) return
    this.#isOff = isOff
    for (const view of this.#views.values()) view.switched()
  }

  /** Sends what changed since the last flush, in frames of bounded size. */
  flush(): void {
    if (this.#toSave.size > 0) this.#save()
    let changed = [...this.#views.values()].filter(({ isChanged }) => isChanged)
    if (changed.length === 0) return
    while (changed.length > 0) {
      this.#version++
      this.#options.onVersion(this.#version)
      for (const view of changed) view.flush(this.epoch, this.#version, this.#isOff)
      // Of what is too much for one frame, each further one is a version of its own.
      changed = changed.filter(({ isChanged }) => isChanged)
    }
    if (this.#fresh.size > 0) this.#tellDelivered()
  }

  /** Joins a sensor to its service's table; what it gets first, and how it leaves. */
  join(serviceId: string, listener: TableListener): { readonly snapshot: TableSnapshot; leave(): void } {
    // No change may be pending when a snapshot is made: its version would hide it.
    this.flush()
    const view = this.#known(serviceId)
    view.listeners.add(listener)
    return { snapshot: view.snapshot(this.epoch, this.#isOff), leave: () => void view.listeners.delete(listener) }
  }

  snapshot(serviceId: string): TableSnapshot {
    this.flush()
    return this.view(serviceId).snapshot(this.epoch, this.#isOff)
  }

  #known(serviceId: string): ServiceView {
    const view = this.view(serviceId)
    view.isKnown = true
    return view
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

  /** An entry of a rule that is being rolled out. */
  #rolledOut({ rollout: _, ...entry }: TableEntry): TableEntry {
    const percent = this.#rules.find(({ id }) => id === entry.ruleId)?.rollout?.percent ?? 100
    return percent === 100 ? entry : { ...entry, rollout: percent }
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

  #tellDelivered(): void {
    for (const track of this.#fresh) {
      const entry = this.#entries.get(track)
      const services = [...track.services].filter((service) => this.view(service).listeners.size > 0)
      const sensors = services.reduce((sum, service) => sum + this.view(service).listeners.size, 0)
      if (entry !== undefined && sensors > 0) this.#options.onDelivered?.(entry, services, sensors)
    }
    this.#fresh.clear()
  }

  /**
   * A service whose processes have no link to a hub has no listeners: its entries are read over HTTP or from a config
   * centre.
   */
  #dropUnused(): void {
    for (const [serviceId, view] of this.#views) {
      if (view.listeners.size === 0 && view.isEmpty) this.#views.delete(serviceId)
    }
  }
}

/**
 * The rules that travel with a service's table. Includes those in shadow mode: they act nowhere, but a key that they
 * win must not be handled under a rule of lower priority.
 */
function rulesOf(rules: readonly Rule[], serviceId: string): readonly Rule[] {
  return rules.filter((rule) => rule.serviceId === '*' || rule.serviceId === serviceId)
}

function narrowed(track: HeatTrack, { onlyInstance: _, ...entry }: TableEntry): TableEntry {
  const onlyInstance = entry.strategy.strategy === 'RateLimit' ? track.soleReporter : undefined
  return onlyInstance === undefined ? entry : { ...entry, onlyInstance }
}
