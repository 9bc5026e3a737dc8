import type { HistoryEvent } from '@firebreak/core'
import type { HubCore } from '@firebreak/hub'
import {
  type FaultHandler,
  type FaultKinds,
  FaultPlayer,
  type FaultSchedule,
  processFaults,
  type SimulatedProcess,
  SimulatedRedis,
  type SimulatedWorld,
  VirtualNetwork,
  VirtualValkey,
} from '@firebreak/testkit'
import { CallOracle, isOn } from '../oracles/call-oracle.ts'
import { watchClaims } from '../oracles/claims.ts'
import { watchCopies } from '../oracles/copy-versions.ts'
import { CountOracle } from '../oracles/count-oracle.ts'
import { watchElections } from '../oracles/elections.ts'
import { checkHeat } from '../oracles/heat.ts'
import { watchMoving } from '../oracles/moving.ts'
import { ReadOracle } from '../oracles/read-oracle.ts'
import { appNames, hubNames } from './fleet-faults.ts'
import { kindOf, laneStaleness, limitPerWindow, passing, versioned } from './keys.ts'
import { openLaneSource } from './lane-source.ts'
import { OtherVersion, otherVersions } from './other-version.ts'
import { type AppLife, mainRedis, SimulatedApp, watchedRedis } from './simulated-app.ts'
import { type ReportSender, SimulatedHub } from './simulated-hub.ts'
import { proxyAddress, SimulatedProxy } from './simulated-proxy.ts'
import { type Caller, plainSend, startPlainWriting, startWork } from './workload.ts'

/** After this time, other keys are popular. */
const periodMs = 2500
/** Writes are this rare, because a key that changes all the time soon hides a missed change. */
const laneWriteShare = 0.03
const focusSize = 4
/** In this share of the periods almost nobody but the job writes, so other writes do not hide what only its changes would show … */
const quietProbability = 1 / 3
/** … and how much of the others' writes is left then. */
const quietWriteShare = 0.02

/** Recorded reports carry the names that they were recorded with. */
const others = 'sensors of other versions'
const anybody = 'anybody'

/** The caller's accesses are counted by whichever run of the proxy it reaches. */
function countedAs({ hostId, instanceId }: ReportSender): string {
  if (hostId === 'proxy') return hostId
  return (appNames as readonly string[]).includes(hostId) ? instanceId : others
}

/**
 * The whole fleet in one world: three applications with shields before one Redis, a caller that goes through a proxy, and
 * two hubs that share another Redis.
 */
export class Fleet {
  readonly world: SimulatedWorld
  /** How shields learn of changes: by tracking, or by the hubs' lane if tracking is refused from the start. */
  readonly guard: 'tracking' | 'lane'
  readonly network: VirtualNetwork
  readonly main: VirtualValkey
  readonly store: VirtualValkey
  readonly hubs: readonly SimulatedHub[]
  readonly apps: readonly SimulatedApp[]
  readonly proxy: SimulatedProxy
  /** Sensors of other versions. */
  readonly others: readonly OtherVersion[]
  readonly player: FaultPlayer
  readonly reads: ReadOracle
  readonly calls: CallOracle
  /** Accesses that processes made, and those that hubs have counted. */
  readonly counts = new CountOracle()
  /** How often hubs recorded each event of the history, as it is stored. */
  readonly recorded = new Map<string, number>()
  isOver = false
  /** True if the store has lost acknowledged data. */
  hasStoreLost = false
  /** True if a hub died, with everything that only it knew. */
  hasHubDied = false
  /** True once the store's clock was set: then it does not know how long a hub was silent. */
  hasOddStoreClock = false
  readonly #schedule: FaultSchedule
  /** When each key was accessed, by anybody and by each process. */
  readonly #accessTimes = new Map<string, number[]>()
  #caller!: SimulatedProcess
  #lives = 0

  constructor(world: SimulatedWorld, schedule: FaultSchedule, guard: 'tracking' | 'lane' = 'tracking') {
    this.world = world
    this.guard = guard
    this.#schedule = schedule
    this.network = new VirtualNetwork(world)
    this.main = new VirtualValkey(world, 'redis-1').listen(this.network, mainRedis).listen(this.network, watchedRedis)
    this.store = new VirtualValkey(world, 'redis-2').listen(this.network, 'redis-2:6379')
    // A stream is trimmed only by whole nodes.
    this.store.ask('CONFIG', 'SET', 'stream-node-max-entries', '1')
    if (guard === 'lane') this.#refusals++
    this.#setRights()
    this.reads = new ReadOracle(world, guard === 'lane' ? laneStaleness : undefined)
    this.calls = new CallOracle(world, schedule)
    const counted = (sender: ReportSender, accesses: number): void => this.counts.counted(countedAs(sender), accesses)
    const recorded = (event: HistoryEvent): void => {
      // Alarms belong to each hub, and are not checked.
      if (event.kind === 'alarm') return
      checkHeat(this, event)
      const text = JSON.stringify(event)
      this.recorded.set(text, (this.recorded.get(text) ?? 0) + 1)
    }
    const started = (process: SimulatedProcess, core: HubCore): void => {
      if (guard === 'lane') process.start(() => openLaneSource(process, this.network, core))
    }
    this.hubs = hubNames.map((name) => new SimulatedHub(world, this.network, name, { counted, recorded, started }))
    this.apps = appNames.map((name) => new SimulatedApp(world, this.network, name, (life) => this.#employ(name, life)))
    this.proxy = new SimulatedProxy(world, this.network)
    this.others = Object.keys(otherVersions).map(
      (name) => new OtherVersion(world, this.network, name, (accesses) => this.counts.made(others, accesses)),
    )
    this.#startCaller()
    this.#startJob()
    const caller = { name: 'caller', current: () => this.#caller, restart: () => this.#startCaller() }
    this.player = new FaultPlayer(world, this.network.faults, this.main.faults, this.store.faults)
      .can(processFaults([...this.hubs, ...this.apps, ...this.others, this.proxy, caller]))
      .can(this.#lossNotes())
      .can({ withoutHubs: (fault, chance) => this.#withoutHubs(fault, chance) })
      .can({ refuseTracking: () => this.#refuseTracking() })
    this.player.play(schedule)
    watchMoving(this)
    watchElections(this)
    watchCopies(this)
    watchClaims(this)
  }

  /** Each application's shield. */
  get lives(): readonly AppLife[] {
    return this.apps.map(({ life }) => life)
  }

  /** Accesses of a key in the second that ended so many milliseconds ago. */
  heatOf(key: string, agoMs: number): number {
    const end = this.world.elapsedMs - agoMs
    return (this.#accessTimes.get(`${anybody} ${key}`) ?? []).filter((atMs) => atMs > end - 1000 && atMs <= end).length
  }

  /** Accesses of a key within the last so many milliseconds, by anybody or by one process. */
  accessesOf(key: string, withinMs: number, by = anybody): number {
    const from = this.world.elapsedMs - withinMs
    return (this.#accessTimes.get(`${by} ${key}`) ?? []).filter((atMs) => atMs > from).length
  }

  /** The processes that were elected to follow a key. */
  followersOf(key: string): string[] {
    const followers = this.lives.filter(({ process, client }) => {
      return process.isAlive && client.space.hot.peek(key)?.copies?.isRefresher === true
    })
    const names = followers.map(({ process }) => process.name)
    const isProxy = this.proxy.current().isAlive && this.proxy.space.hot.peek(key)?.copies?.isRefresher === true
    return isProxy ? [...names, 'proxy'] : names
  }

  /** Accesses of each application that no hub had counted when the faults were over; none while it was switched off. */
  readonly missingAtCalm = new Map<string, number>()

  noteMissing(): void {
    if (this.hubs.some(({ core }) => core?.delivery.isOff !== false)) return
    for (const { shield } of this.lives) {
      const { instanceId } = shield.options
      this.missingAtCalm.set(instanceId, this.counts.missing(instanceId))
    }
  }

  #accessed(who: string, key: string): void {
    this.counts.made(who)
    for (const name of [`${anybody} ${key}`, `${who} ${key}`]) {
      const times = this.#accessTimes.get(name) ?? []
      this.#accessTimes.set(name, times)
      times.push(this.world.elapsedMs)
      if (times.length > 2000) times.splice(0, 1000)
    }
  }

  /** True if there was a fault between two processes within this time, or at one of them; optionally only of one kind. */
  isDisturbed(from: string, to: string, withinMs: number, allowedKind?: string): boolean {
    const earliest = this.world.elapsedMs - withinMs
    return this.#schedule.some((fault) => {
      const { atMs, forMs = 0, kind } = fault
      if (kind === allowedKind) return false
      return isOn(fault, [from, to]) && atMs <= this.world.elapsedMs && atMs + forMs >= earliest
    })
  }

  /** True if there was any fault within this time. */
  isAnyDisturbed(withinMs: number): boolean {
    const now = this.world.elapsedMs
    return this.#schedule.some(({ atMs, forMs = 0 }) => atMs <= now && atMs + forMs >= now - withinMs)
  }

  /** The popular keys at this time, the same for everybody. */
  readonly focus = (): readonly string[] => {
    const period = this.guard === 'lane' ? 0 : Math.floor(this.world.elapsedMs / periodMs)
    if (period !== this.#focusPeriod) {
      this.#focusPeriod = period
      const chance = this.world.chance.fork(`focus ${period}`)
      this.#focus = Array.from({ length: focusSize }, () => chance.pick([...versioned, ...passing]))
      this.#isQuiet = chance.happens(quietProbability)
    }
    return this.#focus
  }
  #focusPeriod = -1
  #focus: string[] = []
  #isQuiet = false

  #employ(name: string, { process, shield, cluster, client }: AppLife): void {
    let thawedAtMs = Number.NEGATIVE_INFINITY
    process.onThaw(() => {
      thawedAtMs = this.world.elapsedMs
    })
    client.onHeld = (heldMs, key) => {
      if (this.world.elapsedMs - heldMs > thawedAtMs) this.calls.held(name, heldMs, key)
    }
    client.onLimit = (_key, isAdmitted) => {
      if (isAdmitted) this.calls.admitted(`${name}#${this.#lives}`, limitPerWindow, 1000)
    }
    const hotOf: Caller['hotOf'] = (key) => (cluster.isActive ? client.space.hot.peek(key) : undefined)
    this.#startWork(process, {
      path: [name, 'redis-1'],
      countedAs: shield.options.instanceId,
      send: (...words) => client.send(...words),
      sendPiped: (...words) => client.sendPiped(...words),
      hotOf,
    })
  }

  #startCaller(): void {
    const process = this.world.process('caller')
    this.#caller = process
    const redis = new SimulatedRedis(process, this.network, proxyAddress, { commandTimeoutMs: 1000 })
    const hotOf: Caller['hotOf'] = (key) => {
      return this.proxy.core.shield!.isActive ? this.proxy.space.hot.peek(key) : undefined
    }
    this.#startWork(process, {
      path: ['caller', 'proxy', 'redis-1'],
      countedAs: 'proxy',
      send: plainSend(redis),
      hotOf,
    })
  }

  /** A program without Firebreak, whose accesses are not counted. */
  #startJob(): void {
    const process = this.world.process('job')
    const redis = new SimulatedRedis(process, this.network, mainRedis, { commandTimeoutMs: 1000 })
    const way = { path: ['job', 'redis-1'], send: plainSend(redis), hotOf: () => undefined }
    const writeShare = (): number => (this.guard === 'lane' ? laneWriteShare : 1)
    startPlainWriting({ ...this.#callerOf(process, way, () => {}), writeShare })
  }

  #startWork(
    process: SimulatedProcess,
    { countedAs: who, ...way }: Pick<Caller, 'path' | 'send' | 'sendPiped' | 'hotOf'> & { countedAs: string },
  ): void {
    startWork(this.#callerOf(process, way, (key) => this.#accessed(who, key)))
  }

  #callerOf(
    process: SimulatedProcess,
    way: Pick<Caller, 'path' | 'send' | 'sendPiped' | 'hotOf'>,
    onAccess: (key: string) => void,
  ): Caller {
    const { reads, calls, focus } = this
    return {
      process,
      client: `${process.name}#${++this.#lives}`,
      ...way,
      reads,
      calls,
      focus,
      writeShare: () => (this.guard === 'lane' ? laneWriteShare : this.#isQuiet ? quietWriteShare : 1),
      isOver: () => this.isOver,
      onAccess,
    }
  }

  /** No hub can be reached from one process; everything else can. */
  readonly #withoutHubs: FaultHandler = (fault, chance) => {
    const [name] = fault.target.split('>')
    const undos = hubNames.map((hub) => {
      return this.network.faults['blackHole']!({ ...fault, target: `${name}>${hub}:7070` }, chance)
    })
    return () => undos.forEach((undo) => void undo?.())
  }

  /** Like an operator who revokes a permission of the user, and ends the connections that still have it. */
  #refuseTracking(): () => void {
    const refuse = (more: number): void => {
      this.#refusals += more
      this.#setRights()
      this.main.ask('CLIENT', 'KILL', 'TYPE', 'normal')
    }
    refuse(1)
    return () => refuse(-1)
  }
  #refusals = 0

  #setRights(): void {
    if (this.guard === 'lane') this.main.ask('CONFIG', 'SET', 'notify-keyspace-events', 'KEA')
    this.main.ask('ACL', 'SETUSER', 'default', this.#refusals > 0 ? '-client|tracking' : '+client|tracking')
  }

  /** Tells the oracles what a server loses, at the moment when it does. */
  #lossNotes(): FaultKinds {
    const lost = (target: string): void => {
      if (target === 'redis-2') {
        this.hasStoreLost = true
        return
      }
      this.reads.lostWrites(this.versions())
      // The permissions set by the operator must not get lost: tracking would be refused until the end, or not at all.
      this.#setRights()
    }
    return {
      loseWrites: ({ target, amount = 100 }) => {
        // After the server's own event at that time.
        this.world.schedule(amount, () => lost(target))
        return undefined
      },
      killEmpty:
        ({ target }) =>
        () =>
          lost(target),
      kill: ({ target }) => {
        if (target.startsWith('hub-')) this.hasHubDied = true
        return undefined
      },
      clockStep: ({ target }) => {
        if (target === 'redis-1') this.reads.hasOddClock = true
        if (target === 'redis-2') this.hasOddStoreClock = true
        return undefined
      },
    }
  }

  /** What Redis holds. */
  versions(): Map<string, number> {
    return new Map(
      versioned.map((key) => {
        const [name, ...args] = kindOf(key).read(key)
        return [key, Number(this.main.ask(name, ...args) ?? 0)]
      }),
    )
  }
}
