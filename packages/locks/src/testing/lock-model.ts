import type { RedisClient } from '@firebreak/redis'
import {
  type Chance,
  type Fault,
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
import { LockLostError } from '../errors.ts'
import type { LeasedLock } from '../lock/leased-lock.ts'
import type { LockHandle } from '../lock/lock-handle.ts'
import { Locks } from '../locks.ts'
import { BrokenLaw } from './broken-law.ts'
import { Replica, ReplicatedRedis } from './replica.ts'
import { Steward } from './steward.ts'

/*
 * Three processes take locks of every kind from one Redis, which is killed, frozen, loses its last writes, restarts empty
 * or has its clock set, over a network that is cut and slow; processes are frozen and killed in the middle. In most runs
 * either writes are lost, or the clock walks both ways and nothing is lost; where both happen at once, tokens may go back
 * (the guide says so), but for no process below what it has seen.
 *
 * In a second model a replica must have every lock (`WAIT`). It falls behind and is promoted with what it has, in some runs
 * while the clock walks; one process follows the promotion without a new connection that it knows of.
 *
 * Laws, as the guide promises them:
 *
 * - A token is greater than every token of that lock that anybody had when it was asked for, whatever was lost; where the
 *   clock walks as well, than every one that the asking process had.
 * - Two owners of an exclusive lock hold it at once only where Redis has lost writes, or its clock was set (which ends
 *   leases early), since the first of them took it; and no more owners hold permits than there are.
 * - Where a replica must have every lock, tokens ascend whatever the clock does, and a lock that was not renewed yet is held
 *   by nobody else after a promotion.
 * - `withLock` resolves only where the lock was ours to the end, and rejects with the result where it was not.
 * - An extended lease lasts as long as was asked for.
 * - When all is well again, everybody gets every lock, and none that is renewed is lost, however short its lease.
 * - Permits that were added or drained count once (see `Steward`).
 * - What is left in Redis then expires within `tokenMemoryMs`.
 *
 * `npm run simulate -- --mutants --model locks` takes each mend out and says which seed of the quick run finds it.
 */

/** What `npm test` runs. */
export const quickSeeds: readonly number[] = Array.from({ length: 8 }, (_, index) => index + 1)

const leaseMs = 900
const tokenMemoryMs = 60_000
const permits = 2
const apps = ['app-1', 'app-2', 'app-3']
const losing = ['loseWrites', 'killEmpty', 'clockStep', 'promote']

const lossy: FaultChoice[] = [
  { kind: 'loseWrites', targets: ['redis'], amount: [50, 900], weight: 6 },
  { kind: 'killEmpty', targets: ['redis'], forMs: [5, 400] },
]
const walking: FaultChoice[] = [{ kind: 'clockStep', targets: ['redis'], amount: [-2000, 2000], weight: 5 }]
/** Whose connections break is told of it, save `app-3`: for that one only promotions happen. */
const told = ['app-1', 'app-2']
const promoting: FaultChoice[] = [
  { kind: 'promote', targets: ['redis'], weight: 6 },
  { kind: 'fallBehind', targets: ['redis'], forMs: [20, 900], weight: 6 },
  { kind: 'clockStep', targets: ['redis'], amount: [-2000, 2000], weight: 3 },
  { kind: 'cut', targets: [...told, 'steward'], weight: 3 },
  { kind: 'freeze', targets: ['redis'], forMs: [5, 1200] },
  { kind: 'slow', targets: ['app-1>redis:6379', 'app-2>redis:6379'], forMs: [50, 800], amount: [5, 300] },
  { kind: 'freeze', targets: apps, forMs: [5, 2500], weight: 2 },
  { kind: 'kill', targets: told, forMs: [5, 1000] },
]
const faults: FaultChoice[] = [
  { kind: 'kill', targets: ['redis'], forMs: [5, 1500] },
  { kind: 'freeze', targets: ['redis'], forMs: [5, 1200] },
  { kind: 'cut', targets: [...apps, 'steward', 'steward', 'redis'], weight: 4 },
  { kind: 'slow', targets: ['app-1>redis:6379', 'app-2>redis:6379'], forMs: [50, 800], amount: [5, 300] },
  { kind: 'freeze', targets: apps, forMs: [5, 2500], weight: 2 },
  { kind: 'kill', targets: apps, forMs: [5, 1000] },
]

/** The faults of one run. */
export function lockSchedule(chance: Chance): FaultSchedule {
  const draw = chance.next()
  const worst = draw < 0.4 ? lossy : draw < 0.75 ? walking : [...lossy, ...walking]
  const choices = [...worst, ...faults]
  const drawn = randomSchedule(chance, choices, { count: 25, toMs: 15_000 })
  return drawn.flatMap((fault) => [fault, ...companions(fault, chance)]).sort((a, b) => a.atMs - b.atMs)
}

/** The faults of one run in which a replica must have every lock: it is promoted while it is behind. */
export function replicatedSchedule(chance: Chance): FaultSchedule {
  const walks = chance.next() < 0.5
  const choices = walks ? promoting : promoting.filter(({ kind }) => kind !== 'clockStep')
  const drawn = randomSchedule(chance, choices, { count: 25, toMs: 15_000 })
  const scenes = drawn.flatMap((fault): Fault[] => {
    if (fault.kind !== 'promote') return [fault]
    const forMs = Math.round(chance.between(30, 400))
    return [{ kind: 'fallBehind', target: 'redis', atMs: Math.max(0, fault.atMs - forMs), forMs: forMs + 1 }, fault]
  })
  return scenes.sort((a, b) => a.atMs - b.atMs)
}

/**
 * Who asks first when the last writes are lost is somebody who does not know of them: a process that begins, one that
 * stood still, or one whose request was under way. The others stand still for a moment then.
 */
function companions({ kind, atMs, amount = 0 }: Fault, chance: Chance): Fault[] {
  if (kind !== 'loseWrites') return []
  const asks = chance.pick(apps)
  const lostAt = atMs + amount
  const others = apps.filter((app) => app !== asks)
  const variants: Fault[] = [
    { kind: 'kill', target: asks, atMs: lostAt - 100, forMs: 102 },
    { kind: 'freeze', target: asks, atMs: Math.max(0, atMs - 20), forMs: amount + 25 },
    { kind: 'slow', target: `${asks}>redis:6379`, atMs: Math.max(0, lostAt - 150), forMs: 155, amount: 80 },
  ]
  const isOff = (target: string): Fault => ({ kind: 'freeze', target, atMs: lostAt - 2, forMs: 250 })
  return [chance.pick(variants), ...others.map(isOff)]
}

interface Held {
  readonly handle: LockHandle
  readonly app: string
  readonly losses: number
  readonly atMs: number
}

/** The laws of all locks, checked by an observer. */
class Oracle {
  readonly #tokens = new Map<string, number>()
  /** Each process' own tokens, per lifetime. */
  readonly #seen = new WeakMap<SimulatedProcess, Map<string, number>>()
  readonly #isWeak: boolean
  readonly #held = new Map<string, Set<Held>>()
  readonly #alive: (app: string) => boolean
  /** A lock that was not renewed yet is in the replica too: promotions are no excuse for it. */
  readonly #freshMs: number
  /** How often Redis has lost writes, or had its clock set. */
  losses = 0
  taken = 0

  /** @param isWeak writes are lost and the clock walks: only what a process has seen itself binds its next token */
  constructor(alive: (app: string) => boolean, isWeak: boolean, freshMs: number) {
    this.#alive = alive
    this.#isWeak = isWeak
    this.#freshMs = freshMs
  }

  /** The token that the next one of this process must exceed. */
  highest(lock: string, app: SimulatedProcess): number {
    return this.#highestOf(app).get(lock) ?? 0
  }

  #highestOf(app: SimulatedProcess): Map<string, number> {
    if (!this.#isWeak) return this.#tokens
    const seen = this.#seen.get(app) ?? new Map<string, number>()
    this.#seen.set(app, seen)
    return seen
  }

  took(lock: string, app: SimulatedProcess, handle: LockHandle, before: number, most: number): Held {
    this.taken++
    if (handle.token <= before) throw new Error(`${lock}: the token ${handle.token} is not above ${before}`)
    this.#highestOf(app).set(lock, Math.max(this.highest(lock, app), handle.token))
    const { elapsedMs: atMs } = app.world
    const held: Held = { handle, app: app.name, losses: this.losses, atMs }
    const others = this.#held.get(lock) ?? new Set()
    this.#held.set(lock, others)
    const together = [...others].filter((other) => this.#alive(other.app) && other.handle.isHeld)
    // A hold that began before the last loss may be unknown to Redis; its owner hears of it at its next renewal.
    const rightful = together.filter((other) => other.losses === this.losses || atMs - other.atMs < this.#freshMs)
    if (handle.isHeld && rightful.length >= most) throw new Error(`${lock}: ${rightful.length + 1} hold it at once`)
    others.add(held)
    return held
  }

  left(lock: string, held: Held): void {
    this.#held.get(lock)?.delete(held)
  }
}

/** One run; throws where a law is broken. */
export async function playLocks(world: SimulatedWorld, schedule: FaultSchedule): Promise<PlayResult> {
  const network = new VirtualNetwork(world, { delayMs: [0.1, 3] })
  const valkey = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
  const lives = new Map<string, SimulatedProcess>()
  const has = (...kinds: readonly string[]) => schedule.some(({ kind }) => kinds.includes(kind))
  const isLossy = has('loseWrites', 'killEmpty')
  const replica = has('promote') ? new Replica(world, valkey) : undefined
  // Steps of the clock end leases early, promotions do not.
  const freshMs = replica !== undefined && !has('clockStep') ? 150 : 0
  const oracle = new Oracle((app) => lives.get(app)!.isAlive, isLossy && has('clockStep'), freshMs)
  const state = { isOver: false, isPeace: false }
  const start = (name: string): void => {
    const app = world.process(name)
    lives.set(name, app)
    const options = { commandTimeoutMs: 700, resends: true }
    const client =
      replica === undefined
        ? new SimulatedRedis(app, network, 'redis:6379', options)
        : new ReplicatedRedis(app, replica, name === 'app-3', network, 'redis:6379', options)
    const locks = new Locks(client as unknown as RedisClient, {
      leaseMs,
      tokenMemoryMs,
      ...(replica !== undefined && { replicas: { count: 1, timeoutMs: 150 } }),
      runtime: app.runtime,
    })
    for (let task = 0; task < 3; task++) {
      app.start(async () => {
        while (!state.isOver) {
          await oneTurn(oracle, locks, app, state)
          await app.sleep(app.chance.between(1, 60))
        }
      })
    }
    app.start(() => takeTokens(oracle, locks, app))
  }
  const player = new FaultPlayer(world, network.faults, valkey.faults).can(
    processFaults(apps.map((name) => ({ name, current: () => lives.get(name)!, restart: () => start(name) }))),
  )
  player.can({
    promote: () => void replica?.promote(),
    fallBehind: () => replica?.fallBehind(),
  })
  // Everything after the moment of the snapshot is lost.
  for (const { atMs, kind, amount = 100, forMs = 0 } of schedule.filter(({ kind }) => losing.includes(kind))) {
    const until = kind === 'loseWrites' ? amount : forMs
    for (const at of [atMs, atMs + until]) world.schedule(at, () => oracle.losses++)
  }
  for (const name of apps) start(name)
  const steward = new Steward(world.process('steward'), network, () => oracle.losses)
  steward.begin()
  player.play(schedule)
  await world.run(18_000)
  player.undoAll()
  await world.run(8000)
  state.isPeace = true
  const takenInTrouble = oracle.taken
  await world.run(4000)
  if (oracle.taken < takenInTrouble + 60)
    throw new Error(`only ${oracle.taken - takenInTrouble} locks were had in peace`)
  state.isOver = true
  steward.end()
  await world.run(3000)
  await world.finish(steward.settle(isLossy))
  for (const key of valkey.ask('KEYS', '*') as string[]) {
    const ttl = Number(valkey.ask('PTTL', key))
    if (ttl < 0 || ttl > tokenMemoryMs) throw new Error(`${key} is left behind for ${ttl} ms`)
  }
  return { calls: oracle.taken, faults: player.injected }
}

/** Takes uncontended permits one after another: their tokens ascend, whoever asks next. */
async function takeTokens(oracle: Oracle, locks: Locks, app: SimulatedProcess): Promise<void> {
  const semaphore = locks.getSemaphore('wide', 1000)
  while (app.world.elapsedMs < 17_000) {
    const before = oracle.highest('wide', app)
    const handle = await semaphore.tryAcquire().catch(() => undefined)
    if (handle !== undefined) oracle.left('wide', oracle.took('wide', app, handle, before, Number.POSITIVE_INFINITY))
    await handle?.unlock().catch(() => {})
    await app.sleep(app.chance.between(5, 40))
  }
}

/** One lock of some kind, taken and released, or lost. */
async function oneTurn(
  oracle: Oracle,
  locks: Locks,
  app: SimulatedProcess,
  state: { readonly isPeace: boolean },
): Promise<void> {
  const { chance } = app
  const kind = chance.pick(['lock', 'spin', 'fair', 'write', 'read', 'permit'])
  const name = chance.pick(['a', 'b'])
  const kinds: Record<string, () => LeasedLock> = {
    lock: () => locks.getLock(`lock ${name}`),
    spin: () => locks.getSpinLock(`lock ${name}`),
    fair: () => locks.getFairLock(`fair ${name}`),
    write: () => locks.getReadWriteLock(`rw ${name}`).write,
    read: () => locks.getReadWriteLock(`rw ${name}`).read,
  }
  const most = kind === 'permit' ? permits : kind === 'read' ? Number.POSITIVE_INFINITY : 1
  // Readers and writers share a sequence of tokens.
  const lock = kind === 'read' ? `read ${name}` : `${kind === 'spin' ? 'lock' : kind} ${name}`
  const counted = kind === 'read' || kind === 'write' ? `rw ${name}` : lock
  const before = oracle.highest(counted, app)
  let wasHeldAtEnd = false
  const work = async (handle: LockHandle) => {
    const held = oracle.took(lock, app, handle, before, most)
    oracle.took(counted === lock ? `${lock} token` : counted, app, handle, before, Number.POSITIVE_INFINITY)
    try {
      await app.sleep(chance.between(0, 300))
      const isExtended = chance.next() < 0.2
      if (isExtended) await extend(handle, app, Math.round(chance.between(100, 1500)), lock)
      if (isExtended || chance.next() < 0.1) await app.sleep(chance.between(0, 1500))
    } finally {
      oracle.left(lock, held)
    }
    wasHeldAtEnd = handle.isHeld
    return 'done'
  }
  const renew = chance.next() < 0.5
  const lease = chance.next() < 0.3 ? { leaseMs: 600, renew } : {}
  const options = { waitMs: 2000, ...lease }
  const isRenewed = lease.renew ?? true
  const beganInPeace = state.isPeace
  try {
    if (kind === 'permit') await locks.getSemaphore(`permit ${name}`, permits).withPermit(work, options)
    else await kinds[kind]!().withLock(work, options)
    if (!wasHeldAtEnd) throw new BrokenLaw(`${lock}: withLock resolved although the lock was lost`)
  } catch (error) {
    if (error instanceof BrokenLaw || /hold it at once|is not above/.test(String(error))) throw error
    if (error instanceof LockLostError && error.result !== 'done') {
      throw new BrokenLaw(`${lock}: the result of a lost lock is ${String(error.result)}`)
    }
    if (error instanceof LockLostError && beganInPeace && isRenewed)
      throw new BrokenLaw(`${lock}: a lease that is renewed was lost without any fault (${error.reason})`)
    // Redis unreachable, or no turn in time: try the next one.
  }
}

async function extend(handle: LockHandle, app: SimulatedProcess, leaseMs: number, lock: string): Promise<void> {
  const askedAt = app.world.nowMs
  const isExtended = await handle.extend(leaseMs).catch(() => false)
  const leastMs = leaseMs - (app.world.nowMs - askedAt) - 1
  if (isExtended && handle.isHeld && handle.remainingMs < leastMs)
    throw new BrokenLaw(`${lock}: a lease of ${leaseMs} ms, just extended, lasts ${handle.remainingMs} ms`)
}
