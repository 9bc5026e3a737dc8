import {
  type Clock,
  decodeInvalidation,
  decodeJsonPayload,
  type Frame,
  type HeartbeatPayload,
  type HelloPayload,
  type InspectPayload,
  parseKeyText,
  type RefusedPayload,
  type TimerHandle,
  type WelcomePayload,
} from '@firebreak/core'
import type { MetricFamily } from '@firebreak/core/metrics'
import type { Rule } from '@firebreak/core/rules'
import { ClusterShield } from './cluster-shield.ts'
import { DiskTier } from './disk/disk-tier.ts'
import { pass, type Verdict } from './gate/verdict.ts'
import { HubClock } from './hub/hub-clock.ts'
import { HubLink } from './hub/hub-link.ts'
import { Lane } from './hub/lane.ts'
import { RenewableToken } from './hub/renewable-token.ts'
import { type Claim, Reporting } from './hub/reporting.ts'
import { LoadProbe } from './load/load-probe.ts'
import { type ResolvedShieldOptions, resolveShieldOptions, type ShieldOptions } from './shield-options.ts'
import { buildStatus } from './status/build-status.ts'
import { shieldFamilies } from './status/shield-families.ts'
import { CentreTables } from './table/centre-tables.ts'
import { FollowedTable } from './table/followed-table.ts'
import { guardRuntime } from './trouble/guard.ts'
import { Trouble } from './trouble/trouble.ts'
import type { Upstream } from './watcher/upstream.ts'

const statusMs = 1000
const tickMs = 50

/**
 * A process' shield: one link to a hub, one strategy table, and a `ClusterShield` for each Redis that the process uses.
 * It counts, reports, and carries out the table; whatever it cannot do is left to plain Redis.
 */
export class Shield {
  readonly options: ResolvedShieldOptions
  readonly trouble: Trouble
  /** Takes replies that do not fit in memory; undefined if not configured. */
  readonly diskTier: DiskTier | undefined
  readonly #clock: Clock
  readonly #clusters = new Map<string, ClusterShield>()
  readonly #table: FollowedTable
  readonly #link: HubLink
  /** The config centre's table; undefined if none is configured. */
  readonly #centre: CentreTables | undefined
  readonly #hubClock: HubClock
  readonly #reporting: Reporting
  readonly #lane = new Lane()
  /** Measures Redis nodes as long as the hub asks for it. */
  readonly #probe: LoadProbe
  /** Called for each key that this shield alone found hot, for other shields of the same process (`takeClaim`). */
  onClaim: ((claim: Claim) => void) | undefined
  #isOff = false
  /** False while the connected hub may not know that the switch is on. */
  #maySwitchOn = false
  readonly #token: RenewableToken
  #heartbeatMs = 1000
  #timer: TimerHandle | undefined
  #statusAt: number
  #reportedTrouble = 0
  #reportedDrops = 0

  constructor(options: ShieldOptions = {}) {
    const resolved = resolveShieldOptions(options)
    this.trouble = new Trouble(resolved.onWarning)
    const runtime = guardRuntime(resolved.runtime, this.trouble)
    this.options = { ...resolved, runtime }
    const { hubs, hubTransport: transport, maxQueuedReports, maxQueuedEntries } = this.options
    const { clock, timers } = runtime
    this.#clock = clock
    const { diskTier } = this.options
    this.diskTier = diskTier === undefined ? undefined : new DiskTier(diskTier, this.trouble, timers)
    this.#hubClock = new HubClock(clock)
    this.#table = new FollowedTable({
      options: this.options,
      trouble: this.trouble,
      hubClock: this.#hubClock,
      clusters: this.#clusters,
      onChanged: () => this.#hearSwitch(this.#table.isOff),
      onRules: (rules) => this.#setRules(rules),
      askForSnapshot: (reason) => this.#link.send('resync', { reason }),
    })
    this.#statusAt = clock.now()
    this.#token = new RenewableToken(this.options, this.trouble)
    this.#link = new HubLink({
      urls: hubs,
      token: this.#token,
      transport,
      reporter: this.options,
      maxQueuedReports,
      maxQueuedEntries,
      ...runtime,
      trouble: this.trouble,
      hello: () => this.#hello(),
      onFrame: (frame) => this.#received(frame),
      onDown: () => {
        this.#lane.disconnected()
        this.#table.disconnected()
      },
    })
    this.#reporting = new Reporting({
      runtime,
      clusters: this.#clusters,
      table: this.#table,
      link: this.#link,
      onClaim: (claim) => this.onClaim?.(claim),
    })
    this.#probe = new LoadProbe({
      runtime,
      trouble: this.trouble,
      upstreamOf: (redisClusterId) => this.#clusters.get(redisClusterId)?.upstream,
      send: (nodes) => this.#link.send('load', { nodes }),
    })
    this.#table.restore()
    const { tables: url } = this.options
    this.#centre =
      url === undefined
        ? undefined
        : new CentreTables({
            url,
            options: this.options,
            trouble: this.trouble,
            hubClock: this.#hubClock,
            link: this.#link,
            table: this.#table,
            onTaken: (isAlone) => {
              this.#maySwitchOn = !isAlone
            },
          })
    this.#isOff = this.#table.isOff
    this.#link.start()
    this.#timer = timers.setInterval(() => this.#tick(), tickMs)
  }

  /** True while the kill switch is on. */
  get isOff(): boolean {
    return this.#isOff
  }

  /** True while a hub is connected. */
  get isConnected(): boolean {
    return this.#link.isOpen
  }

  /** True while the config centre's table applies because no hub answers. */
  get isByCentre(): boolean {
    return this.#centre?.isInCharge === true
  }

  get tableVersion(): { readonly epoch: string; readonly version: number } {
    return { epoch: this.#table.epoch, version: this.#table.version }
  }

  /** Reports dropped and internal failures so far. */
  get losses(): { readonly droppedReports: number; readonly troubles: number } {
    return { droppedReports: this.#link.queue.dropped, troubles: this.trouble.count }
  }

  /** This shield's metrics. */
  families(): MetricFamily[] {
    const sentReports = this.#link.queue.taken
    return shieldFamilies({ shield: this, clusters: [...this.#clusters.values()], sentReports })
  }

  /** The shield of one Redis; clients of the same `redisClusterId` share it. */
  cluster(redisClusterId: string, upstream: Upstream): ClusterShield {
    const known = this.#clusters.get(redisClusterId)
    if (known !== undefined) return known
    const { serviceId, leaseMs, fallbackTtlMs, canaryMs, maxKeys, redactKey, retry, runtime } = this.options
    const { limitProcesses: processes, maxLimitWaiting: maxWaiting } = this.options
    const { maxLimitWaitMs: maxWaitMs, limitDeadlineMs: deadlineMs } = this.options
    const cluster = new ClusterShield({
      redisClusterId,
      serviceId,
      processId: this.options.instanceId,
      upstream,
      leaseMs,
      trackingRetry: retry.tracking,
      fallbackTtlMs,
      canaryMs,
      maxKeys,
      limits: { processes, maxWaiting, maxWaitMs, deadlineMs },
      redactKey,
      runtime,
      hubNow: () => this.#hubClock.now(),
      trouble: this.trouble,
      diskTier: this.diskTier,
      onBurst: () => this.#reporting.burst(() => this.#reportIfDue()),
    })
    cluster.isActive = !this.#isOff
    cluster.setRules(this.#table.rules)
    this.#clusters.set(redisClusterId, cluster)
    cluster.setTable(this.#table.entriesForUs())
    this.#lapseLimits()
    return cluster
  }

  /** Another shield of this process found a key hot: it is hot here too, without another check. */
  takeClaim({ redisClusterId, name, crossing }: Claim): void {
    this.#clusters.get(redisClusterId)?.claim(name, crossing)
  }

  /** The verdict on a command that could not be judged: our own failure is not the application's. */
  passAfter(error: unknown): Verdict {
    this.trouble.note('hook', 'a command could not be counted; it was sent to Redis unchanged', error)
    return pass
  }

  /** Sends the remaining counts and closes the link and the watchers; clients are plain afterwards. */
  close(): void {
    if (this.#timer === undefined) return
    this.#timer.cancel()
    this.#timer = undefined
    this.#reporting.report(true)
    this.#sendStatus()
    this.#probe.close()
    this.#table.close()
    // Before the keys are dropped, so that what should survive stays.
    this.diskTier?.close().catch((error) => this.trouble.failed(error))
    for (const cluster of this.#clusters.values()) cluster.close()
    this.#clusters.clear()
    this.#link.close()
    this.#centre?.close()
  }

  #hello(): HelloPayload {
    const { serviceId, hostId, instanceId, agent, runtime } = this.options
    const token = this.#token.current
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
      canInspect: true,
      canProbe: true,
      takesParts: true,
    }
  }

  /** A user at the hub asks about a key. */
  async #inspect({ id, redisClusterId, key, wantsValue }: InspectPayload): Promise<void> {
    const name = parseKeyText(key)
    const cluster = this.#clusters.get(redisClusterId)
    const isValueShown = wantsValue && this.options.showsValues
    const found = name === undefined ? undefined : await cluster?.inspect(name, isValueShown).catch(() => undefined)
    const problem = "this process has no connection to the key's Redis"
    this.#link.send('inspected', { id, ...(found ?? { problem }) })
  }

  #received(frame: Frame): void {
    switch (frame.type) {
      case 'welcome':
        this.#welcomed(decodeJsonPayload<'welcome'>(frame))
        return
      case 'snapshot':
        this.#table.takeSnapshot(() => decodeJsonPayload<'snapshot'>(frame))
        return
      case 'delta':
        this.#table.takeDelta(() => decodeJsonPayload<'delta'>(frame))
        return
      case 'heartbeat':
        this.#beat(decodeJsonPayload<'heartbeat'>(frame))
        return
      case 'invalidate':
        this.#invalidated(frame)
        return
      case 'inspect':
        this.#inspect(decodeJsonPayload<'inspect'>(frame)).catch((error) => this.trouble.failed(error))
        return
      case 'probe':
        this.#probe.ask(decodeJsonPayload<'probe'>(frame))
        return
      case 'refused': {
        this.#refused(decodeJsonPayload<'refused'>(frame))
        return
      }
    }
  }

  #refused({ code, reason }: RefusedPayload): void {
    const { current, file } = this.#token
    // A hub of an earlier version does not say which of the two it is.
    if (code !== 'FB_TOKEN_REFUSED' && code !== 'FB_TOKEN_MISSING') {
      this.trouble.note('hub-refused', `the hub refused this process: ${reason} (${code})`)
    } else if (current === undefined) {
      this.trouble.note(
        'hub-refused',
        `the hub at ${this.#link.hubUrl} requires an app token, and this process has none; set FIREBREAK_TOKEN, FIREBREAK_TOKEN_FILE or the option token`,
      )
    } else if (!this.#token.renew()) {
      const where = file === undefined ? '' : ` (${file})`
      this.trouble.note(
        'hub-refused',
        `the hub at ${this.#link.hubUrl} does not accept the app token of this process${where}: it is unknown there, expired or revoked; give it a current one, from "firebreak token create --app" or "firebreak token rotate"`,
      )
    }
  }

  #invalidated(frame: Frame): void {
    if (this.#lane.received(frame.sequence)) this.#laneMissed()
    try {
      const invalidation = decodeInvalidation(frame)
      this.#clusters.get(invalidation.redisClusterId)?.invalidate(invalidation)
    } catch (error) {
      // Something has changed in a way that only a later version can express: whatever it is, it is not served.
      this.#flushAll()
      throw error
    }
  }

  #welcomed({ hubId, hubTime, heartbeatMs, intervalMs, samplingFloor }: WelcomePayload): void {
    // Its first heartbeat, right after its table, says whether it knows.
    this.#maySwitchOn = false
    this.#hubClock.restart()
    this.#hubClock.heard(hubTime)
    this.#table.connected()
    this.#lane.connected(hubId)
    this.#link.expectHeartbeat(heartbeatMs)
    this.#heartbeatMs = heartbeatMs
    this.#reporting.setPace(intervalMs, samplingFloor)
  }

  #beat(heartbeat: HeartbeatPayload): void {
    const { hubTime, epoch, version, laneHead, isOff, intervalMs, samplingFloor } = heartbeat
    this.#hubClock.heard(hubTime)
    this.#reporting.setPace(intervalMs, samplingFloor)
    this.#maySwitchOn = heartbeat.isAlone !== true
    this.#hearSwitch(isOff)
    if (this.#lane.heard(laneHead)) this.#laneMissed()
    this.#renewLaneLeases(heartbeat)
    if (heartbeat.isAlone === true) this.#link.preferAnother()
    else this.#link.isWell()
    this.#table.heard(epoch, version)
  }

  /** The hub's sources have seen every write of these clusters up to a moment in hub time. */
  #renewLaneLeases({ hubTime, watched = [] }: HeartbeatPayload): void {
    for (const { redisClusterId, completeAgoMs } of watched) {
      const completeAt = hubTime - this.#hubClock.offsetMs - completeAgoMs
      const lengthMs = this.options.leaseMs + 2 * this.#heartbeatMs
      this.#clusters.get(redisClusterId)?.laneLease.renew(completeAt, lengthMs)
    }
  }

  #setRules(rules: readonly Rule[]): void {
    for (const cluster of this.#clusters.values()) cluster.setRules(rules)
    this.#reporting.setRules(rules)
  }

  #lapseLimits(): void {
    // The limits of the centre's table end by themselves when nobody renews them.
    this.#table.lapseLimits(this.#link.isOpen || this.isByCentre, this.#link.heardAt)
  }

  /** A hub that is cut off from its store may not have heard that the switch is on: it can turn it on, but not off. */
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
    // Lets the hub see at once that this process has followed.
    this.#sendStatus()
  }

  #laneMissed(): void {
    for (const cluster of this.#clusters.values()) cluster.laneMissed()
  }

  #flushAll(): void {
    for (const cluster of this.#clusters.values()) cluster.flush()
  }

  #tick(): void {
    const now = this.#clock.now()
    // What fails in one of them does not end the others.
    for (const cluster of this.#clusters.values()) this.trouble.attempt(() => cluster.tick())
    this.trouble.attempt(() => this.#probe.tick())
    this.trouble.attempt(() => this.#reportIfDue())
    this.trouble.attempt(() => this.#link.flush())
    this.trouble.attempt(() => this.#centre?.tick())
    this.trouble.attempt(() => this.#lapseLimits())
    if (now - this.#statusAt >= statusMs) this.#sendStatus()
  }

  #reportIfDue(): void {
    if (!this.#isOff) this.#reporting.reportIfDue()
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
      // They wait while there is no hub.
      troubles: this.isConnected ? this.trouble.takeNoted() : [],
    })
    if (!this.#link.send('status', status)) return
    this.#reportedDrops = droppedReports
    this.#reportedTrouble = troubles
  }
}
