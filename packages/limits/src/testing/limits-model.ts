import type { RedisClient } from '@firebreak/redis'
import {
  type Chance,
  type FaultChoice,
  FaultPlayer,
  type FaultSchedule,
  type PlayResult,
  processFaults,
  randomSchedule,
  type SimulatedProcess,
  SimulatedRedis,
  type SimulatedWorld,
  VirtualNetwork,
  VirtualValkey,
} from '@firebreak/testkit'
import { localLimiter } from '../local/local-limiter.ts'
import { type RedisLimiter, redisLimiter } from '../redis/redis-limiter.ts'
import type { LimitSpec } from '../spec/spec.ts'
import {
  calendarWindow,
  fixedWindow,
  gcra,
  leakyBucket,
  slidingCounter,
  slidingLog,
  slidingWindow,
  tokenBucket,
} from '../spec/specs.ts'
import { BrokenLaw } from './broken-law.ts'
import { ClockStretches, readEveryMs } from './clock-stretches.ts'
import { Latecomers } from './latecomers.ts'
import { Ledger } from './ledger.ts'

/*
 * Three processes charge limits of every algorithm on one Redis, and limits in process, over a network that is cut, slow and
 * silent; Redis is killed, frozen, loses its last writes, restarts empty or has its clock set, to and fro within a span and
 * far beyond one; processes are frozen, killed, and have their clocks set.
 *
 * Laws, as docs/guides/limits.md promises them:
 *
 * - While the readings of Redis' clock lie within one span of each other, a limit admits no more than in one span of a
 *   steady clock; where Redis lost what it had counted, once more for each time.
 * - In process no step of any clock admits more.
 * - No call rejects because of Redis, and each is answered within `deadlineMs`.
 * - Every charge that was told is made, none is made twice, and a refund counts once however often it is asked for.
 * - A call that was answered without Redis charges nobody when it gets there at last, unless Redis' clock was set.
 * - When all is well again a key that nobody charges has its whole limit back within two spans.
 *
 * `npm run simulate -- --mutants --model limits` takes a guard out at a time and says which seed of the quick run finds it.
 */

/** What `npm test` plays. */
export const quickSeeds: readonly number[] = Array.from({ length: 8 }, (_, index) => index + 1)

const apps = ['app-1', 'app-2', 'app-3']
const limit = 10
const windowMs = 1000
const deadlineMs = 50
/** A timer, and the turn in which it is heard. */
const slackMs = 3
const rate = { perMs: windowMs }

interface Played {
  readonly spec: LimitSpec
  /** What one span of a steady clock may admit. */
  readonly most: number
}

const shared: Readonly<Record<string, Played>> = {
  epoch: { spec: fixedWindow({ limit, windowMs }), most: 2 * limit },
  firstHit: { spec: fixedWindow({ limit, windowMs, anchor: 'firstHit' }), most: 2 * limit },
  strict: { spec: slidingWindow({ limit, windowMs }), most: limit },
  counter: { spec: slidingCounter({ limit, windowMs }), most: 2 * limit },
  log: { spec: slidingLog({ limit, windowMs }), most: limit },
  bucket: { spec: tokenBucket({ capacity: limit, refill: limit, ...rate }), most: 2 * limit },
  meter: { spec: leakyBucket({ capacity: limit, leak: limit, ...rate }), most: 2 * limit },
  gcra: { spec: gcra({ capacity: limit, rate: limit, ...rate }), most: 2 * limit },
}

const local: Readonly<Record<string, Played>> = {
  log: { spec: slidingLog({ limit, windowMs }), most: limit },
  bucket: { spec: tokenBucket({ capacity: limit, refill: limit, ...rate }), most: 2 * limit },
  hour: { spec: calendarWindow({ limit, unit: 'hour' }), most: 2 * limit },
}

const lossy: FaultChoice[] = [
  { kind: 'loseWrites', targets: ['redis'], amount: [50, 900], weight: 5 },
  { kind: 'killEmpty', targets: ['redis'], forMs: [5, 400] },
]
const walking: FaultChoice[] = [
  { kind: 'clockStep', targets: ['redis'], amount: [-windowMs, windowMs], weight: 6 },
  { kind: 'clockStep', targets: ['redis'], amount: [-60_000, 60_000] },
]
const faults: FaultChoice[] = [
  { kind: 'kill', targets: ['redis'], forMs: [5, 1500] },
  { kind: 'freeze', targets: ['redis'], forMs: [5, 1200] },
  { kind: 'cut', targets: [...apps, 'redis'], weight: 3 },
  { kind: 'blackHole', targets: [...apps, 'redis'], forMs: [20, 1500], weight: 2 },
  { kind: 'slow', targets: apps.map((app) => `${app}>redis:6379`), forMs: [50, 1500], amount: [5, 120], weight: 3 },
  { kind: 'freeze', targets: apps, forMs: [5, 2500] },
  { kind: 'kill', targets: apps, forMs: [5, 1000] },
  { kind: 'clockStep', targets: apps, amount: [-900, 900] },
]

/** The faults of one run. In most writes are lost or the clock of Redis walks. */
export function limitsSchedule(chance: Chance): FaultSchedule {
  const draw = chance.next()
  const worst = draw < 0.2 ? [] : draw < 0.4 ? lossy : draw < 0.8 ? walking : [...lossy, ...walking]
  return randomSchedule(chance, [...worst, ...faults], { count: 25, toMs: 15_000 })
}

/** One run; throws where a law is broken. */
export async function playLimits(world: SimulatedWorld, schedule: FaultSchedule): Promise<PlayResult> {
  const network = new VirtualNetwork(world, { delayMs: [0.1, 3] })
  const valkey = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
  const stretches = new Map(Object.keys(shared).map((name) => [name, new ClockStretches(windowMs)]))
  const ledger = new Ledger(schedule.some(({ kind }) => kind === 'loseWrites' || kind === 'killEmpty'))
  const latecomers = new Latecomers(valkey)
  const state = { isOver: false, calls: 0 }
  const read = (): void => {
    for (const each of stretches.values()) each.read(world.elapsedMs, valkey.process.wallNowMs)
    if (!state.isOver) world.schedule(readEveryMs, read)
  }
  read()
  const lives = new Map<string, SimulatedProcess>()
  const begin = (name: string): void => {
    const app = world.process(name)
    lives.set(name, app)
    new LimitedApp(app, network, { stretches, ledger, latecomers, state }).begin()
  }
  for (const name of apps) begin(name)
  const player = new FaultPlayer(world, network.faults, valkey.faults).can(
    processFaults(apps.map((name) => ({ name, current: () => lives.get(name)!, restart: () => begin(name) }))),
  )
  player.play(schedule)
  await world.run(17_000)
  player.undoAll()
  await world.run(2000)
  state.isOver = true
  // Two spans, and what an outage leaves of deadlines and probes.
  await world.run(2 * windowMs + 500)
  await world.finish(checkEnd(world, network))
  const lostAtMs = schedule.flatMap(({ kind, atMs, amount = 100, forMs = 0 }) => {
    if (kind === 'loseWrites') return [atMs + amount]
    return kind === 'killEmpty' ? [atMs + forMs] : []
  })
  for (const [name, each] of stretches) {
    const excess = each.excess(shared[name]!.most, lostAtMs)
    if (excess !== undefined) throw new BrokenLaw(`${name}: ${excess}`)
  }
  const isSet = schedule.some(({ kind, target }) => kind === 'clockStep' && target === 'redis')
  if (lostAtMs.length === 0 && !isSet) latecomers.check()
  if (lostAtMs.length === 0) ledger.check(await world.finish(usedOf(world, network)))
  return { calls: state.calls, faults: player.injected }
}

interface Told {
  readonly stretches: ReadonlyMap<string, ClockStretches>
  readonly ledger: Ledger
  readonly latecomers: Latecomers
  readonly state: { isOver: boolean; calls: number }
}

/** A process that charges limits until it is over. */
class LimitedApp {
  readonly #process: SimulatedProcess
  readonly #redis: RedisClient
  readonly #told: Told
  #thawedAtMs = Number.NEGATIVE_INFINITY

  constructor(process: SimulatedProcess, network: VirtualNetwork, told: Told) {
    this.#process = process
    this.#told = told
    this.#redis = clientOf(process, network)
    process.onThaw(() => {
      this.#thawedAtMs = process.world.elapsedMs
    })
  }

  begin(): void {
    for (const [name, { spec }] of Object.entries(shared)) {
      const limiter = limiterOf(spec, name, this.#redis, this.#process)
      this.#repeatedly([5, 60], () => this.#take(name, limiter))
    }
    const limiter = limiterOf(Ledger.spec, Ledger.key, this.#redis, this.#process)
    this.#repeatedly([5, 40], () => this.#told.ledger.charge(limiter, this.#process.chance))
    this.#repeatedly([50, 200], () => this.#told.ledger.refund(limiter, this.#process))
    const once = limiterOf(Latecomers.spec, 'once', this.#redis, this.#process)
    let isKnown = false
    this.#repeatedly([20, 60], async () => {
      isKnown = (await this.#told.latecomers.take(once, this.#process, isKnown)) || isKnown
    })
    for (const played of Object.values(local)) this.#takeHere(played)
  }

  #repeatedly([from, to]: readonly [number, number], act: () => Promise<unknown>): void {
    this.#process.start(async () => {
      while (!this.#told.state.isOver) {
        await act()
        await this.#process.sleep(this.#process.chance.between(from, to))
      }
    })
  }

  /** A charge of a limit that all share. */
  async #take(name: string, limiter: RedisLimiter): Promise<void> {
    const { world, chance } = this.#process
    const sentAtMs = world.elapsedMs
    const cost = chance.happens(0.1) ? 3 : 1
    const answer = await limiter.take('k', cost).catch((error: unknown) => {
      throw new BrokenLaw(`${name}: a call was rejected: ${String(error)}`)
    })
    this.#told.state.calls++
    const tookMs = world.elapsedMs - sentAtMs
    if (tookMs > deadlineMs + slackMs && this.#thawedAtMs < sentAtMs) {
      throw new BrokenLaw(`${name}: a call took ${tookMs.toFixed(1)} ms`)
    }
    if (answer.allowed) this.#told.stretches.get(name)!.admitted(sentAtMs, world.elapsedMs, cost)
  }

  /** A limit in process: its clock is the steady one, or for the hour the wall clock, which no step here leaves a span of. */
  #takeHere({ spec, most }: Played): void {
    const { world, runtime } = this.#process
    const limiter = localLimiter(spec, { runtime })
    const admittedAt: number[] = []
    this.#repeatedly([2, 60], async () => {
      if (!limiter.take('k').allowed) return
      const now = world.elapsedMs
      admittedAt.push(now)
      const spanMs = spec.kind === 'calendarWindow' ? Number.POSITIVE_INFINITY : windowMs
      // Times are counted in whole milliseconds.
      while (admittedAt[0]! <= now - spanMs + 1) admittedAt.shift()
      if (admittedAt.length > most) throw new BrokenLaw(`${spec.kind} in process admitted ${admittedAt.length}`)
    })
  }
}

/** All is well, and nobody has charged anything for two spans: everybody has the whole limit. */
async function checkEnd(world: SimulatedWorld, network: VirtualNetwork): Promise<void> {
  const late = world.process('late')
  const redis = clientOf(late, network)
  for (const [name, { spec }] of Object.entries(shared)) {
    const { source, allowed, remaining } = await limiterOf(spec, name, redis, late).take('k')
    if (source === 'redis' && allowed && remaining === limit - 1) continue
    throw new BrokenLaw(`${name}: of an unused limit ${remaining} are left, by ${source}`)
  }
}

async function usedOf(world: SimulatedWorld, network: VirtualNetwork): Promise<number> {
  const last = world.process('last')
  const { source, remaining } = await limiterOf(Ledger.spec, Ledger.key, clientOf(last, network), last).peek(Ledger.key)
  if (source !== 'redis') throw new BrokenLaw(`the ledger cannot be read: ${source}`)
  return Ledger.spec.limit - remaining
}

function limiterOf(spec: LimitSpec, name: string, redis: RedisClient, { runtime }: SimulatedProcess): RedisLimiter {
  // What a shared limit admits is what Redis admits: while it is away nothing is.
  return redisLimiter(spec, redis, { prefix: name, onUnavailable: 'closed', deadlineMs, awakeMs: 0, runtime })
}

function clientOf(process: SimulatedProcess, network: VirtualNetwork): RedisClient {
  const redis = new SimulatedRedis(process, network, 'redis:6379', { commandTimeoutMs: 700, resends: true })
  return redis as unknown as RedisClient
}
