import {
  type Clock,
  decodeInvalidation,
  decodeJsonPayload,
  type Frame,
  type HeartbeatPayload,
  type HelloPayload,
  keyText,
  rateLimitLapseMs,
  StrategyTable,
  type TableDelta,
  type TableEntry,
  type TimerHandle,
  type WelcomePayload,
} from '@firebreak/core'
import type { MetricFamily } from '@firebreak/core/metrics'
import type { Rule } from '@firebreak/core/rules'
import { ClusterShield } from './cluster-shield.ts'
import { Cadence } from './counting/cadence.ts'
import type { Crossing } from './counting/fast-path.ts'
import { ReportSampler } from './counting/report-sampler.ts'
import { sampledRows } from './counting/sampled-rows.ts'
import { DiskTier } from './disk/disk-tier.ts'
import { pass, type Verdict } from './gate/verdict.ts'
import { HubClock } from './hub/hub-clock.ts'
import { HubLink } from './hub/hub-link.ts'
import { Lane } from './hub/lane.ts'
import { type PendingSection, SectionWriter } from './hub/pending-report.ts'
import { type ResolvedShieldOptions, resolveShieldOptions, type ShieldOptions } from './shield-options.ts'
import { buildStatus } from './status/build-status.ts'
import { shieldFamilies } from './status/shield-families.ts'
import { readDelta, readSnapshot } from './table/read-table.ts'
import { StrategyPool } from './table/strategy-pool.ts'
import { type SavedTable, TableFile } from './table/table-file.ts'
import { guardRuntime } from './trouble/guard.ts'
import { Trouble } from './trouble/trouble.ts'
import type { Upstream } from './watcher/upstream.ts'

const statusMs = 1000
const tickMs = 50

/** A key that one shield found hot before any hub said so. */
export interface Claim {
  readonly redisClusterId: string
  readonly name: string
  readonly crossing: Crossing
}

/**
 * The shield of a process: one link to a hub, one strategy table, and a `ClusterShield` for each Redis that the process
 * uses. It counts, reports, and carries out what the table says; what it cannot do it leaves to plain Redis.
 */
export class Shield {
  readonly options: ResolvedShieldOptions
  readonly trouble: Trouble
  /** Where replies go that memory has no room for; undefined where none was asked for. */
  readonly diskTier: DiskTier | undefined
  readonly #clock: Clock
  readonly #clusters = new Map<string, ClusterShield>()
  readonly #table = new StrategyTable()
  readonly #link: HubLink
  readonly #hubClock: HubClock
  readonly #cadence: Cadence
  readonly #sampler: ReportSampler
  readonly #file: TableFile | undefined
  readonly #lane = new Lane()
  readonly #strategies = new StrategyPool()
  readonly #section = new SectionWriter()
  /** Told of each key that this shield alone found hot, for other shields of the same process (`takeClaim`). */
  onClaim: ((claim: Claim) => void) | undefined
  #rules: readonly Rule[] = []
  #isOff = false
  /** False while the hub that is connected may not know of a thrown switch. */
  #maySwitchOn = false
  #heartbeatMs = 1000
  #resyncAskedAt = Number.NEGATIVE_INFINITY
  #timer: TimerHandle | undefined
  #isBurstPlanned = false
  #statusAt: number
  #reportedTrouble = 0
  #reportedDrops = 0

  constructor(options: ShieldOptions = {}) {
    const resolved = resolveShieldOptions(options)
    this.trouble = new Trouble(resolved.onWarning)
    const runtime = guardRuntime(resolved.runtime, this.trouble)
    this.options = { ...resolved, runtime }
    const { hubs, token, hubTransport: transport, maxQueuedReports, maxQueuedEntries } = this.options
    const { clock, timers, random } = runtime
    this.#clock = clock
    const { diskTier } = this.options
    this.diskTier = diskTier === undefined ? undefined : new DiskTier(diskTier, this.trouble, timers)
    this.#hubClock = new HubClock(clock)
    this.#cadence = new Cadence(clock.now())
    this.#sampler = new ReportSampler(random)
    this.#statusAt = clock.now()
    this.#link = new HubLink({
      urls: hubs,
      token,
      transport,
      reporter: this.options,
      maxQueuedReports,
      maxQueuedEntries,
      ...runtime,
      trouble: this.trouble,
      hello: () => this.#hello(),
      onFrame: (frame) => this.#received(frame),
      onDown: () => this.#lane.disconnected(),
    })
    const { tableFile } = this.options
    this.#file =
      tableFile === undefined
        ? undefined
        : new TableFile(tableFile, () => this.#saved(), { ...runtime, trouble: this.trouble })
    this.#restore()
    this.#link.start()
    this.#timer = timers.setInterval(() => this.#tick(), tickMs)
  }

  /** True while the kill switch is thrown. */
  get isOff(): boolean {
    return this.#isOff
  }

  /** True while a hub is connected. */
  get isConnected(): boolean {
    return this.#link.isOpen
  }

  get tableVersion(): { readonly epoch: string; readonly version: number } {
    return { epoch: this.#table.epoch, version: this.#table.version }
  }

  /** Reports that were ever dropped, and trouble of our own so far. */
  get losses(): { readonly droppedReports: number; readonly troubles: number } {
    return { droppedReports: this.#link.queue.dropped, troubles: this.trouble.count }
  }

  /** What this shield did and does, for whoever shows it. */
  families(): MetricFamily[] {
    const sentReports = this.#link.queue.taken
    return shieldFamilies({ shield: this, clusters: [...this.#clusters.values()], sentReports })
  }

  /** The shield of one Redis; clients of the same `redisClusterId` share it. */
  cluster(redisClusterId: string, upstream: Upstream): ClusterShield {
    const known = this.#clusters.get(redisClusterId)
    if (known !== undefined) return known
    const { serviceId, leaseMs, fallbackTtlMs, canaryMs, maxKeys, redactKey, runtime } = this.options
    const { limitProcesses: processes, maxLimitWaiting: maxWaiting, maxLimitWaitMs: maxWaitMs } = this.options
    const cluster = new ClusterShield({
      redisClusterId,
      serviceId,
      processId: this.options.instanceId,
      upstream,
      leaseMs,
      fallbackTtlMs,
      canaryMs,
      maxKeys,
      limits: { processes, maxWaiting, maxWaitMs },
      redactKey,
      runtime,
      hubNow: () => this.#hubClock.now(),
      trouble: this.trouble,
      diskTier: this.diskTier,
      onBurst: () => this.#burst(),
    })
    cluster.isActive = !this.#isOff
    cluster.setRules(this.#table.rules)
    this.#clusters.set(redisClusterId, cluster)
    cluster.setTable(this.#entriesForUs())
    this.#lapseLimits()
    return cluster
  }

  /** Another shield of this process found a key hot: it is hot here too, and not looked for again. */
  takeClaim({ redisClusterId, name, crossing }: Claim): void {
    this.#clusters.get(redisClusterId)?.claim(name, crossing)
  }

  /** The verdict on a command that could not be judged: our own trouble is not the application's. */
  passAfter(error: unknown): Verdict {
    this.trouble.note('hook', 'a command could not be counted; it went to Redis as it was', error)
    return pass
  }

  /** Sends what was counted, ends the link and the watchers; clients are plain afterwards. */
  close(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#report(true)
    this.#sendStatus()
    this.#file?.close()
    // Before the keys are dropped: what is to survive stays.
    void this.diskTier?.close()
    for (const cluster of this.#clusters.values()) cluster.close()
    this.#clusters.clear()
    this.#link.close()
  }

  #hello(): HelloPayload {
    const { serviceId, hostId, instanceId, agent, token, runtime } = this.options
    return {
      serviceId,
      hostId,
      instanceId,
      agent,
      redisClusterIds: [...this.#clusters.keys()],
      epoch: this.#table.epoch,
      version: this.#table.version,
      sentAt: runtime.wallClock.now(),
      ...(token !== undefined && { token }),
    }
  }

  #received(frame: Frame): void {
    switch (frame.type) {
      case 'welcome':
        this.#welcomed(decodeJsonPayload<'welcome'>(frame))
        return
      case 'snapshot': {
        const snapshot = decodeJsonPayload<'snapshot'>(frame)
        this.#resyncAskedAt = Number.NEGATIVE_INFINITY
        const { kind } = this.#table.applySnapshot(readSnapshot(snapshot, this.trouble, this.#strategies))
        if (kind !== 'applied') return
        for (const cluster of this.#clusters.values()) cluster.setTable(this.#entriesForUs())
        this.#tableChanged()
        return
      }
      case 'delta': {
        const delta = readDelta(decodeJsonPayload<'delta'>(frame), this.trouble, this.#strategies)
        const result = this.#table.applyDelta(delta)
        if (result.kind === 'gap') this.#resync(`a delta from version ${delta.from} does not fit`)
        if (result.kind !== 'applied') return
        this.#changeClusters(delta)
        this.#tableChanged()
        return
      }
      case 'heartbeat':
        this.#beat(decodeJsonPayload<'heartbeat'>(frame))
        return
      case 'invalidate':
        this.#invalidated(frame)
        return
      case 'refused': {
        const { code, reason } = decodeJsonPayload<'refused'>(frame)
        this.trouble.note('hub-refused', `the hub refused this process: ${reason} (${code})`)
        return
      }
    }
  }

  #invalidated(frame: Frame): void {
    if (this.#lane.received(frame.sequence)) this.#laneMissed()
    try {
      const invalidation = decodeInvalidation(frame)
      this.#clusters.get(invalidation.redisClusterId)?.invalidate(invalidation)
    } catch (error) {
      // Something has changed, and a later version says what: whatever it is, it is not served.
      this.#flushAll()
      throw error
    }
  }

  #welcomed({ hubId, hubTime, heartbeatMs, intervalMs, samplingFloor }: WelcomePayload): void {
    // Its first heartbeat, right behind its table, says whether it knows.
    this.#maySwitchOn = false
    this.#hubClock.restart()
    this.#hubClock.heard(hubTime)
    this.#resyncAskedAt = Number.NEGATIVE_INFINITY
    this.#lane.connected(hubId)
    this.#link.expectHeartbeat(heartbeatMs)
    this.#heartbeatMs = heartbeatMs
    this.#setPace(intervalMs, samplingFloor)
  }

  #beat(heartbeat: HeartbeatPayload): void {
    const { hubTime, epoch, version, laneHead, isOff, intervalMs, samplingFloor } = heartbeat
    this.#hubClock.heard(hubTime)
    this.#setPace(intervalMs, samplingFloor)
    this.#maySwitchOn = heartbeat.isAlone !== true
    this.#hearSwitch(isOff)
    if (this.#lane.heard(laneHead)) this.#laneMissed()
    this.#renewLaneLeases(heartbeat)
    if (heartbeat.isAlone === true) this.#link.preferAnother()
    else this.#link.isWell()
    const isBehind = epoch !== this.#table.epoch || version > this.#table.version
    if (isBehind) this.#resync(`the hub has version ${version}, this process ${this.#table.version}`)
  }

  /** The hub's sources have seen every write of these clusters up to a moment of the hub's time. */
  #renewLaneLeases({ hubTime, watched = [] }: HeartbeatPayload): void {
    for (const { redisClusterId, completeAgoMs } of watched) {
      const completeAt = hubTime - this.#hubClock.offsetMs - completeAgoMs
      const lengthMs = this.options.leaseMs + 2 * this.#heartbeatMs
      this.#clusters.get(redisClusterId)?.laneLease.renew(completeAt, lengthMs)
    }
  }

  #setPace(intervalMs: number, samplingFloor: number): void {
    if (intervalMs > 0) this.#cadence.intervalMs = intervalMs
    this.#sampler.setFactor(samplingFloor)
  }

  #resync(reason: string): void {
    const now = this.#clock.now()
    if (now - this.#resyncAskedAt < 1000) return
    if (this.#link.send('resync', { reason })) this.#resyncAskedAt = now
  }

  #changeClusters({ set, removed }: TableDelta): void {
    for (const [id, cluster] of this.#clusters) {
      const isOwn = ({ redisClusterId }: { readonly redisClusterId: string }) => redisClusterId === id
      const own = set.filter(isOwn)
      const gone = [...removed.filter(isOwn), ...own.filter((entry) => !this.#isForUs(entry))]
      cluster.changeTable(
        own.filter((entry) => this.#isForUs(entry)),
        gone.map(({ key }) => key),
      )
    }
  }

  /** What hangs on the word of one process is for that one. */
  #isForUs({ onlyInstance }: TableEntry): boolean {
    return onlyInstance === undefined || onlyInstance === this.options.instanceId
  }

  *#entriesForUs(): Generator<TableEntry> {
    for (const entry of this.#table.entries()) if (this.#isForUs(entry)) yield entry
  }

  #tableChanged(): void {
    this.#hearSwitch(this.#table.isOff)
    const { rules } = this.#table
    if (rules !== this.#rules) {
      this.#rules = rules
      for (const cluster of this.#clusters.values()) cluster.setRules(rules)
      this.#sampler.setRules(rules)
    }
    this.#file?.changed()
  }

  /** A RateLimit lapses without a hub. */
  #lapseLimits(): void {
    const isAlone = !this.#link.isOpen && this.#clock.now() - this.#link.heardAt > rateLimitLapseMs
    for (const cluster of this.#clusters.values()) cluster.setLimitsLapsed(isAlone, () => this.#entriesForUs())
  }

  /** A hub that is cut off from its store may not have heard of a thrown switch: it can only throw it. */
  #hearSwitch(isOff: boolean): void {
    if (isOff || this.#maySwitchOn) this.#setOff(isOff)
  }

  #setOff(isOff: boolean): void {
    if (this.#isOff === isOff) return
    this.#isOff = isOff
    for (const cluster of this.#clusters.values()) {
      cluster.isActive = !isOff
      cluster.flush()
    }
    // The hub sees at once that this process has followed.
    this.#sendStatus()
  }

  #laneMissed(): void {
    for (const cluster of this.#clusters.values()) cluster.laneMissed()
  }

  #flushAll(): void {
    for (const cluster of this.#clusters.values()) cluster.flush()
  }

  #burst(): void {
    this.#cadence.burst()
    if (this.#isBurstPlanned) return
    this.#isBurstPlanned = true
    this.options.runtime.timers.setTimeout(
      () => {
        this.#isBurstPlanned = false
        this.#reportIfDue()
      },
      // A timer may fire a little early, and one that came too soon would leave it to the next tick.
      Math.ceil(this.#cadence.burstDelayMs(this.#clock.now())) + 1,
    )
  }

  #tick(): void {
    const now = this.#clock.now()
    for (const cluster of this.#clusters.values()) cluster.tick()
    this.#reportIfDue()
    this.#link.flush()
    this.#lapseLimits()
    if (now - this.#statusAt >= statusMs) this.#sendStatus()
  }

  #reportIfDue(): void {
    if (this.#isOff) return
    let count = 0
    for (const cluster of this.#clusters.values()) count += cluster.countSoFar
    if (this.#cadence.isDue(this.#clock.now(), count)) this.#report()
  }

  #report(isLast = false): void {
    this.#cadence.reported(this.#clock.now())
    const sections = [...this.#clusters.values()].map((cluster) => this.#drain(cluster, isLast))
    const counted = sections.filter(({ totalCount }) => totalCount > 0)
    if (counted.length > 0) this.#link.report({ collectTs: this.options.runtime.wallClock.now(), sections: counted })
  }

  #drain(cluster: ClusterShield, isLast: boolean): PendingSection {
    const { redisClusterId } = cluster
    const looksForHot = this.#sampler.isSampling && cluster.hasHotKeys
    const entryOf = looksForHot ? (key: string) => this.#table.get(redisClusterId, key) : undefined
    const totalCount = cluster.drain({
      ...sampledRows(this.#section, this.#sampler, entryOf),
      takesPieces: !this.#sampler.isSampling && !isLast,
      onCrossing: (name, outside, crossing) => {
        if (!cluster.claim(name, crossing)) return
        this.onClaim?.({ redisClusterId, name, crossing })
        const { ruleId, heat } = crossing
        this.#link.send('claim', { redisClusterId, key: keyText(outside), ruleId, heat })
      },
    })
    cluster.takeNews((outside) => {
      const entry = this.#table.get(redisClusterId, outside)
      return entry !== undefined && this.#isForUs(entry) ? entry : undefined
    })
    return this.#section.finish(redisClusterId, totalCount)
  }

  #sendStatus(): void {
    this.#statusAt = this.#clock.now()
    const { droppedReports, troubles } = this.losses
    const status = buildStatus(this.#clusters.values(), {
      sentAt: this.options.runtime.wallClock.now(),
      ...this.tableVersion,
      isOff: this.#isOff,
      droppedReports: droppedReports - this.#reportedDrops,
      errors: troubles - this.#reportedTrouble,
    })
    if (!this.#link.send('status', status)) return
    this.#reportedDrops = droppedReports
    this.#reportedTrouble = troubles
  }

  #saved(): SavedTable {
    // The file outlives this process' steady clock: the offset is to the wall clock.
    const { clock, wallClock } = this.options.runtime
    return {
      snapshot: this.#table.snapshot(),
      hubOffsetMs: this.#hubClock.offsetMs + clock.now() - wallClock.now(),
    }
  }

  #restore(): void {
    const saved = this.#file?.read(this.#strategies)
    if (saved === undefined) return
    const { clock, wallClock } = this.options.runtime
    this.#hubClock.restart(saved.hubOffsetMs + wallClock.now() - clock.now())
    this.#table.applySnapshot(saved.snapshot)
    this.#rules = this.#table.rules
    this.#sampler.setRules(this.#rules)
    this.#isOff = saved.snapshot.isOff
  }
}
