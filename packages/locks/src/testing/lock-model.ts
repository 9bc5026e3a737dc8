import type { RedisClient } from '@firebreak/redis'
import {
  type Chance,
  type FaultChoice,
  FaultPlayer,
  type FaultSchedule,
  type PlayResult,
  processFaults,
  randomSchedule,
  SimulatedRedis,
  type SimulatedWorld,
  VirtualNetwork,
  VirtualValkey,
} from '@firebreak/testkit'
import { LockLostError } from '../errors.ts'
import type { LeasedLock } from '../lock/leased-lock.ts'
import type { LockHandle } from '../lock/lock-handle.ts'
import { Locks } from '../locks.ts'

/*
 * Three processes take locks of every kind from one Redis, which is killed, frozen, loses its last writes, restarts empty
 * or has its clock set, over a network that is cut and slow; processes are frozen and killed in the middle. In one half
 * of the runs writes are lost; in the other the clock walks both ways and nothing is lost: where both happen at once,
 * tokens may go back (the guide says so).
 *
 * Laws, as the guide promises them:
 *
 * - A token is greater than every token of that lock that anybody had when it was asked for, whatever was lost.
 * - Two owners of an exclusive lock hold it at once only where Redis has lost writes, or its clock was set (which ends
 *   leases early), since the first of them took it; and no more owners hold permits than there are.
 * - `withLock` resolves only where the lock was ours to the end, and rejects with the result where it was not.
 * - When all is well again, everybody gets every lock.
 * - What is left in Redis then expires within `tokenMemoryMs`.
 */

const leaseMs = 900
const tokenMemoryMs = 60_000
const permits = 2
const apps = ['app-1', 'app-2', 'app-3']

const lossy: FaultChoice[] = [
  { kind: 'loseWrites', targets: ['redis'], amount: [50, 900], weight: 6 },
  { kind: 'killEmpty', targets: ['redis'], forMs: [5, 400] },
]
const walking: FaultChoice[] = [{ kind: 'clockStep', targets: ['redis'], amount: [-2000, 2000], weight: 5 }]
const faults: FaultChoice[] = [
  { kind: 'kill', targets: ['redis'], forMs: [5, 1500] },
  { kind: 'freeze', targets: ['redis'], forMs: [5, 1200] },
  { kind: 'cut', targets: [...apps, 'redis'], weight: 3 },
  { kind: 'slow', targets: ['app-1>redis:6379', 'app-2>redis:6379'], forMs: [50, 800], amount: [5, 300] },
  { kind: 'freeze', targets: apps, forMs: [5, 2500], weight: 2 },
  { kind: 'kill', targets: apps, forMs: [5, 1000] },
]

/** The faults of one run. */
export function lockSchedule(chance: Chance): FaultSchedule {
  const choices = [...(chance.next() < 0.5 ? lossy : walking), ...faults]
  return randomSchedule(chance, choices, { count: 25, toMs: 15_000 })
}

interface Held {
  readonly handle: LockHandle
  readonly app: string
  readonly losses: number
}

/** What is true of all locks, as an onlooker sees it. */
class Oracle {
  readonly #tokens = new Map<string, number>()
  readonly #held = new Map<string, Set<Held>>()
  readonly #alive: (app: string) => boolean
  /** How often Redis has lost writes, or had its clock set. */
  losses = 0
  taken = 0

  constructor(alive: (app: string) => boolean) {
    this.#alive = alive
  }

  highest(lock: string): number {
    return this.#tokens.get(lock) ?? 0
  }

  took(lock: string, app: string, handle: LockHandle, before: number, most: number): Held {
    this.taken++
    if (handle.token <= before) throw new Error(`${lock}: the token ${handle.token} is not above ${before}`)
    this.#tokens.set(lock, Math.max(this.highest(lock), handle.token))
    const held: Held = { handle, app, losses: this.losses }
    const others = this.#held.get(lock) ?? new Set()
    this.#held.set(lock, others)
    const together = [...others].filter((other) => this.#alive(other.app) && other.handle.isHeld)
    // A hold that began before the last loss may be unknown to Redis; its owner hears of it at its next renewal.
    const rightful = together.filter((other) => other.losses === this.losses)
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
  const lives = new Map<string, ReturnType<SimulatedWorld['process']>>()
  const oracle = new Oracle((app) => lives.get(app)!.isAlive)
  const state = { isOver: false }
  const start = (name: string): void => {
    const app = world.process(name)
    lives.set(name, app)
    const client = new SimulatedRedis(app, network, 'redis:6379', { commandTimeoutMs: 700, resends: true })
    const locks = new Locks(client as unknown as RedisClient, { leaseMs, tokenMemoryMs, runtime: app.runtime })
    for (let task = 0; task < 3; task++) {
      app.start(async () => {
        while (!state.isOver) {
          await oneTurn(oracle, locks, app)
          await app.sleep(app.chance.between(1, 60))
        }
      })
    }
  }
  const player = new FaultPlayer(world, network.faults, valkey.faults).can(
    processFaults(apps.map((name) => ({ name, current: () => lives.get(name)!, restart: () => start(name) }))),
  )
  // What is lost is lost from the moment on at which the picture is taken.
  const losing = schedule.filter(({ kind }) => ['loseWrites', 'killEmpty', 'clockStep'].includes(kind))
  for (const { atMs, kind, amount = 100, forMs = 0 } of losing) {
    const until = kind === 'loseWrites' ? amount : forMs
    for (const at of [atMs, atMs + until]) world.schedule(at, () => oracle.losses++)
  }
  for (const name of apps) start(name)
  player.play(schedule)
  await world.run(18_000)
  player.undoAll()
  await world.run(8000)
  const takenInTrouble = oracle.taken
  await world.run(4000)
  if (oracle.taken < takenInTrouble + 60)
    throw new Error(`only ${oracle.taken - takenInTrouble} locks were had in peace`)
  state.isOver = true
  await world.run(3000)
  for (const key of valkey.ask('KEYS', '*') as string[]) {
    const ttl = Number(valkey.ask('PTTL', key))
    if (ttl < 0 || ttl > tokenMemoryMs) throw new Error(`${key} is left behind for ${ttl} ms`)
  }
  return { calls: oracle.taken, faults: player.injected }
}

/** One lock of some kind, taken and left again, or lost. */
async function oneTurn(oracle: Oracle, locks: Locks, app: ReturnType<SimulatedWorld['process']>): Promise<void> {
  const { chance } = app
  const kind = chance.pick(['lock', 'lock', 'fair', 'write', 'read', 'permit'])
  const name = chance.pick(['a', 'b'])
  const kinds: Record<string, () => LeasedLock> = {
    lock: () => locks.getLock(`lock ${name}`),
    fair: () => locks.getFairLock(`fair ${name}`),
    write: () => locks.getReadWriteLock(`rw ${name}`).write,
    read: () => locks.getReadWriteLock(`rw ${name}`).read,
  }
  const most = kind === 'permit' ? permits : kind === 'read' ? Number.POSITIVE_INFINITY : 1
  // Readers are told apart from writers only by their tokens, which they share.
  const lock = kind === 'read' ? `read ${name}` : `${kind} ${name}`
  const counted = kind === 'read' || kind === 'write' ? `rw ${name}` : lock
  const before = oracle.highest(counted)
  let wasHeldAtEnd = false
  const work = async (handle: LockHandle) => {
    const held = oracle.took(lock, app.name, handle, before, most)
    oracle.took(counted === lock ? `${lock} token` : counted, app.name, handle, before, Number.POSITIVE_INFINITY)
    try {
      await app.sleep(chance.between(0, 300))
      const isExtended = chance.next() < 0.2
      if (isExtended) await handle.extend(Math.round(chance.between(100, 1500))).catch(() => false)
      if (isExtended || chance.next() < 0.1) await app.sleep(chance.between(0, 1500))
    } finally {
      oracle.left(lock, held)
    }
    wasHeldAtEnd = handle.isHeld
    return 'done'
  }
  const options = { waitMs: 2000, ...(chance.next() < 0.3 ? { leaseMs: 600, renew: chance.next() < 0.5 } : {}) }
  try {
    if (kind === 'permit') await locks.getSemaphore(`permit ${name}`, permits).withPermit(work, options)
    else await kinds[kind]!().withLock(work, options)
    if (!wasHeldAtEnd) throw new BrokenLaw(`${lock}: withLock resolved although the lock was lost`)
  } catch (error) {
    if (error instanceof BrokenLaw || /hold it at once|is not above/.test(String(error))) throw error
    if (error instanceof LockLostError && error.result !== 'done') {
      throw new BrokenLaw(`${lock}: the result of a lost lock is ${String(error.result)}`)
    }
    // Redis out of reach, no turn in time: the next one comes.
  }
}

class BrokenLaw extends Error {}
