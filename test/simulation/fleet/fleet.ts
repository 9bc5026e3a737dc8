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
import { watchMoving } from '../oracles/moving.ts'
import { ReadOracle } from '../oracles/read-oracle.ts'
import { appNames, hubNames } from './fleet-faults.ts'
import { kindOf, limitPerWindow, passing, versioned } from './keys.ts'
import { type AppLife, mainRedis, SimulatedApp, watchedRedis } from './simulated-app.ts'
import { SimulatedHub } from './simulated-hub.ts'
import { proxyAddress, SimulatedProxy } from './simulated-proxy.ts'
import { plainSend, startWork } from './workload.ts'

/** Other keys are in demand after this time. */
const periodMs = 2500
const focusSize = 4

/**
 * The whole fleet in one world: three applications with shields before one Redis, a caller that goes through a proxy, and
 * two hubs that share another Redis.
 */
export class Fleet {
  readonly world: SimulatedWorld
  readonly network: VirtualNetwork
  readonly main: VirtualValkey
  readonly store: VirtualValkey
  readonly hubs: readonly SimulatedHub[]
  readonly apps: readonly SimulatedApp[]
  readonly proxy: SimulatedProxy
  readonly player: FaultPlayer
  readonly reads: ReadOracle
  readonly calls: CallOracle
  /** Accesses that callers made, and those that hubs have counted. */
  accesses = 0
  counted = 0
  isOver = false
  /** True where the store has lost what it had acknowledged. */
  hasStoreLost = false
  /** True where a hub died, and what it alone knew with it. */
  hasHubDied = false
  readonly #schedule: FaultSchedule
  readonly #accessTimes = new Map<string, number[]>()
  #caller!: SimulatedProcess
  #lives = 0

  constructor(world: SimulatedWorld, schedule: FaultSchedule) {
    this.world = world
    this.#schedule = schedule
    this.network = new VirtualNetwork(world)
    this.main = new VirtualValkey(world, 'redis-1').listen(this.network, mainRedis).listen(this.network, watchedRedis)
    this.store = new VirtualValkey(world, 'redis-2').listen(this.network, 'redis-2:6379')
    this.reads = new ReadOracle(world)
    this.calls = new CallOracle(world, schedule)
    const counted = (_hub: string, accesses: number): void => void (this.counted += accesses)
    this.hubs = hubNames.map((name) => new SimulatedHub(world, this.network, name, { counted }))
    this.apps = appNames.map((name) => new SimulatedApp(world, this.network, name, (life) => this.#employ(name, life)))
    this.proxy = new SimulatedProxy(world, this.network)
    this.#startCaller()
    const caller = { name: 'caller', current: () => this.#caller, restart: () => this.#startCaller() }
    this.player = new FaultPlayer(world, this.network.faults, this.main.faults, this.store.faults)
      .can(processFaults([...this.hubs, ...this.apps, this.proxy, caller]))
      .can(this.#lossNotes())
      .can({ withoutHubs: (fault, chance) => this.#withoutHubs(fault, chance) })
    this.player.play(schedule)
    watchMoving(this)
  }

  /** Each application's shield. */
  get lives(): readonly AppLife[] {
    return this.apps.map(({ life }) => life)
  }

  /** Accesses of a key in the second that ended so many milliseconds ago. */
  heatOf(key: string, agoMs: number): number {
    const end = this.world.elapsedMs - agoMs
    return (this.#accessTimes.get(key) ?? []).filter((atMs) => atMs > end - 1000 && atMs <= end).length
  }

  #accessed(key: string): void {
    this.accesses++
    const now = this.world.elapsedMs
    const times = this.#accessTimes.get(key) ?? []
    this.#accessTimes.set(key, times)
    times.push(now)
    if (times.length > 2000) times.splice(0, 1000)
  }

  /** True where a fault lay between two processes within this time, or at one of them. */
  isDisturbed(from: string, to: string, withinMs: number): boolean {
    const earliest = this.world.elapsedMs - withinMs
    return this.#schedule.some((fault) => {
      const { atMs, forMs = 0 } = fault
      return isOn(fault, [from, to]) && atMs <= this.world.elapsedMs && atMs + forMs >= earliest
    })
  }

  /** The keys in demand at this time, the same for everybody. */
  readonly focus = (): readonly string[] => {
    const period = Math.floor(this.world.elapsedMs / periodMs)
    if (period !== this.#focusPeriod) {
      this.#focusPeriod = period
      const chance = this.world.chance.fork(`focus ${period}`)
      this.#focus = Array.from({ length: focusSize }, () => chance.pick([...versioned, ...passing]))
    }
    return this.#focus
  }
  #focusPeriod = -1
  #focus: string[] = []

  #employ(name: string, { process, client }: AppLife): void {
    let thawedAtMs = Number.NEGATIVE_INFINITY
    process.onThaw(() => {
      thawedAtMs = this.world.elapsedMs
    })
    client.onHeld = (heldMs) => {
      if (this.world.elapsedMs - heldMs > thawedAtMs) this.calls.held(name, heldMs)
    }
    client.onLimit = (_key, isAdmitted) => {
      if (isAdmitted) this.calls.admitted(`${name}#${this.#lives}`, limitPerWindow, 1000)
    }
    this.#startWork(process, [name, 'redis-1'], (...words) => client.send(...words))
  }

  #startCaller(): void {
    const process = this.world.process('caller')
    this.#caller = process
    const redis = new SimulatedRedis(process, this.network, proxyAddress, { commandTimeoutMs: 1000 })
    this.#startWork(process, ['caller', 'proxy', 'redis-1'], plainSend(redis))
  }

  #startWork(process: SimulatedProcess, path: readonly string[], send: Parameters<typeof startWork>[0]['send']): void {
    const { reads, calls, focus } = this
    startWork({
      process,
      client: `${process.name}#${++this.#lives}`,
      path,
      send,
      reads,
      calls,
      focus,
      isOver: () => this.isOver,
      onAccess: (key) => this.#accessed(key),
    })
  }

  /** No hub can be reached from one process; everything else can. */
  readonly #withoutHubs: FaultHandler = (fault, chance) => {
    const [name] = fault.target.split('>')
    const undos = hubNames.map((hub) => {
      return this.network.faults['blackHole']!({ ...fault, target: `${name}>${hub}:7070` }, chance)
    })
    return () => undos.forEach((undo) => void undo?.())
  }

  /** The oracles hear of what a server loses, at the moment it does. */
  #lossNotes(): FaultKinds {
    const lost = (target: string): void => {
      if (target === 'redis-2') this.hasStoreLost = true
      else this.reads.lostWrites(this.versions())
    }
    return {
      loseWrites: ({ target, amount = 100 }) => {
        // Behind the server's own event at that time.
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
