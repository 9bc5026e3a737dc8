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
import { formatAddress, type NodeAddress } from '../address/node-address.ts'
import { IdsError } from '../errors.ts'
import type { CachedWorker, WorkerCache } from '../node/cache-file.ts'
import { SnowflakeNode } from '../node/snowflake-node.ts'
import { RedisRegistry } from '../workers/redis-registry.ts'

/*
 * Five nodes get worker ids from one Redis and give ids all the while; three of them have a cache file. They are stopped,
 * killed and frozen in the middle, cut off for a moment, and Redis is killed. In a quarter of the runs Redis also is emptied
 * or comes back empty, in another it goes back to an older picture, as a failover does. In the other half nothing is lost,
 * Redis is frozen and out of reach, and the nodes' clocks walk and jump both ways, up to hours. What the guide leaves open
 * does not happen together here: data lost while a clock is behind, or while a node runs on its file because it cannot reach
 * the registry, or lost and then put back.
 *
 * Laws:
 *
 * - No id is given twice, by whomever.
 * - The ids of one address and worker id ascend, over all lives.
 * - Two nodes never give ids of one worker id in turns: who may have lost it has stopped.
 * - When all is well again, every node serves: within the time that a new worker id takes, also after a clock that was
 *   hours ahead.
 *
 * What each mend is worth: taken out by hand, the first seed of the quick run (1 to 16) that fails.
 *
 * | taken out                                                        | seed |
 * | ---------------------------------------------------------------- | ---- |
 * | a new worker id is held before its first id (`settle`)           | 6    |
 * | a node that finds its record gone or taken stops (`checkOwned`)  | 6    |
 * | a running node gives up a worker id that is far ahead            | 2    |
 * | a start gives up a worker id that is far ahead                   | 2    |
 *
 * Not found by the quick run: that the registry is told how far an abandoned worker id went (it matters after a day, when
 * the number is recycled), and the stop after a pause, which `pause.test.ts` holds.
 */

const reportEveryMs = 500
const settleMs = 2 * reportEveryMs
const runMs = 20_000
const restMs = 8000
const names = ['node-1', 'node-2', 'node-3', 'node-4', 'node-5']
const hasFile = (name: string) => name < 'node-4'

const both: FaultChoice[] = [
  { kind: 'kill', targets: names, forMs: [5, 1500], weight: 3 },
  { kind: 'stop', targets: names, weight: 2 },
  { kind: 'freeze', targets: names, forMs: [5, 3000], weight: 4 },
  { kind: 'cut', targets: [...names, 'redis'], weight: 2 },
  { kind: 'kill', targets: ['redis'], forMs: [5, 1500] },
]
const emptying: FaultChoice[] = [
  { kind: 'flush', targets: ['redis'], weight: 4 },
  { kind: 'killEmpty', targets: ['redis'], forMs: [5, 800], weight: 3 },
]
const goingBack: FaultChoice[] = [{ kind: 'loseWrites', targets: ['redis'], amount: [50, 2500], weight: 7 }]
const walking: FaultChoice[] = [
  { kind: 'clockStep', targets: names, amount: [-20, 20], weight: 3 },
  { kind: 'clockStep', targets: names, amount: [-3000, 3000], weight: 3 },
  { kind: 'clockTrip', targets: names, forMs: [100, 2500], amount: [600_000, 7_200_000], weight: 3 },
  { kind: 'clockDrift', targets: names, forMs: [500, 5000], amount: [-50, 50] },
  { kind: 'freeze', targets: ['redis'], forMs: [5, 1500], weight: 2 },
  { kind: 'blackHole', targets: names, forMs: [50, 2500], weight: 2 },
]

/** The faults of one run. */
export function idsSchedule(chance: Chance): FaultSchedule {
  const choices = [...both, ...chance.pick([emptying, goingBack, walking, walking])]
  const schedule = randomSchedule(chance, choices, { count: 30, fromMs: 1500, toMs: runMs })
  // A picture is put back before the next is taken.
  let freeAt = 0
  return schedule.filter(({ kind, atMs, amount = 0 }) => {
    if (kind !== 'loseWrites') return true
    const isApart = atMs > freeAt
    if (isApart) freeAt = atMs + amount
    return isApart
  })
}

/** Who gave an id last. */
interface Giver {
  readonly name: string
  readonly atMs: number
}

/** All ids that were ever given, and what must be true of them. */
class Oracle {
  readonly #given = new Map<bigint, string>()
  readonly #last = new Map<string, bigint>()
  /** The last two givers of each worker id. */
  readonly #givers = new Map<number, { readonly current: Giver; readonly before: Giver | undefined }>()

  get count(): number {
    return this.#given.size
  }

  gave(id: bigint, workerId: number, name: string, atMs: number): void {
    const other = this.#given.get(id)
    if (other !== undefined) throw new BrokenLaw(`${id} of worker ${workerId} was given by ${other} and by ${name}`)
    this.#given.set(id, name)
    const row = `${name} ${workerId}`
    if (id < (this.#last.get(row) ?? 0n)) throw new BrokenLaw(`${id} of ${row} is below its last id`)
    this.#last.set(row, id)
    const givers = this.#givers.get(workerId)
    const { current = undefined, before = undefined } = givers ?? {}
    if (current?.name === name) {
      this.#givers.set(workerId, { current: { name, atMs }, before })
      return
    }
    // It was the other's in between: having it back takes a registration, which is held for a while.
    if (before?.name === name && current !== undefined && atMs - current.atMs < settleMs - reportEveryMs - 100)
      throw new BrokenLaw(`${name} and ${current.name} give ids of worker ${workerId} in turns`)
    this.#givers.set(workerId, { current: { name, atMs }, before: current })
  }
}

/** A law of ids does not hold. */
export class BrokenLaw extends Error {}

/** A cache file as it is on a disk: it outlives the process, its lock does not. */
class MemoryFile implements WorkerCache {
  readonly path: string
  #worker: CachedWorker | undefined
  #holder: SimulatedProcess | undefined

  constructor(path: string) {
    this.path = path
  }

  openBy(holder: SimulatedProcess): this {
    if (this.#holder?.isAlive && this.#holder !== holder) throw new Error(`${this.path} is locked`)
    this.#holder = holder
    return this
  }

  read() {
    if (this.#worker === undefined) return { kind: 'missing', why: 'it is empty' } as const
    return { kind: 'valid', worker: this.#worker } as const
  }

  write(worker: CachedWorker): void {
    if (!this.#holder?.isAlive) throw new Error(`${this.path} is written by a process that is dead`)
    this.#worker = { ...worker }
  }

  close(): void {
    this.#holder = undefined
  }
}

/** One address, over all its lives. */
class ModelNode {
  readonly name: string
  readonly address: NodeAddress
  readonly file: MemoryFile
  process: SimulatedProcess
  node: SnowflakeNode | undefined
  /** The machine's clock against the right time; it outlives the process. */
  clockOffsetMs = 0
  servedAt = 0
  refusal = 'not started'
  isStopping = false

  constructor(name: string, process: SimulatedProcess) {
    this.name = name
    this.address = { ip: '10.0.0.1', port: Number(name.slice(-1)) }
    this.file = new MemoryFile(`${name}.json`)
    this.process = process
  }
}

/** One run; throws where a law is broken. */
export async function playIds(world: SimulatedWorld, schedule: FaultSchedule): Promise<PlayResult> {
  const network = new VirtualNetwork(world, { delayMs: [0.1, 3] })
  const valkey = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
  const oracle = new Oracle()
  const all = new Map<string, ModelNode>()
  const begin = (name: string): void => {
    const process = world.process(name)
    const known = all.get(name)
    const node = known ?? new ModelNode(name, process)
    node.process = process
    process.stepWallClock(node.clockOffsetMs)
    all.set(name, node)
    process.start(() => live(node, process, network, all, oracle))
  }
  const stepClock = (name: string, amount: number): void => {
    const node = all.get(name)!
    node.clockOffsetMs += amount
    node.process.stepWallClock(amount)
  }
  const player = new FaultPlayer(world, network.faults, valkey.faults).can(
    processFaults(names.map((name) => ({ name, current: () => all.get(name)!.process, restart: () => begin(name) }))),
  )
  player.can({
    flush: () => void valkey.ask('FLUSHALL'),
    stop: ({ target }) => {
      all.get(target)!.isStopping = true
      return undefined
    },
    clockTrip: ({ target, amount = 0 }) => {
      stepClock(target, amount)
      return () => stepClock(target, -amount)
    },
  })
  for (const name of names) begin(name)
  // Steps of a clock are the machine's: the next life of the process has them too.
  player.play(schedule.filter(({ kind }) => kind !== 'clockStep'))
  for (const { atMs, target, amount = 0 } of schedule.filter(({ kind }) => kind === 'clockStep'))
    world.schedule(atMs, () => stepClock(target, amount))
  await world.run(runMs)
  player.undoAll()
  for (const { name, clockOffsetMs } of all.values()) stepClock(name, -clockOffsetMs)
  await world.run(restMs)
  for (const { name, servedAt, refusal } of all.values()) {
    if (world.elapsedMs - servedAt > 500) throw new BrokenLaw(`${name} does not serve in peace: ${refusal}`)
  }
  return { calls: oracle.count, faults: schedule.length }
}

/** A process that starts its node until it may, gives ids, and starts again where it is told to stop. */
async function live(
  self: ModelNode,
  process: SimulatedProcess,
  network: VirtualNetwork,
  all: ReadonlyMap<string, ModelNode>,
  oracle: Oracle,
): Promise<void> {
  const { chance, world } = process
  const redis = new SimulatedRedis(process, network, 'redis:6379', { commandTimeoutMs: 400, maxReconnectMs: 100 })
  const runtime = process.runtime
  const clock = lookedAtClock(process)
  for (;;) {
    let node: SnowflakeNode
    try {
      const { address } = self
      const client = redis as unknown as RedisClient
      node = await SnowflakeNode.start({
        registry: new RedisRegistry({ redis: client, address, sessionTimeoutMs: 1000, requestTimeoutMs: 300, runtime }),
        address,
        ...(hasFile(self.name) ? { cacheFile: self.file.path, openCache: () => self.file.openBy(process) } : {}),
        reportEveryMs,
        settleMs,
        registryAheadMs: 1500,
        markAheadMs: 200,
        claimWaitMs: 1200,
        abandonAfterMs: 5000,
        askTime: (peer) => askTime(peer, process, all),
        onAlarm: ({ code }) => process.note(code),
        onLog: (message) => process.note(message),
        runtime,
        clock,
      })
    } catch (error) {
      self.refusal = String(error)
      await process.sleep(chance.between(50, 400))
      continue
    }
    self.node = node
    self.isStopping = false
    while (!self.isStopping) {
      try {
        for (let count = chance.below(40); count >= 0; count--) {
          const id = node.nextBigInt()
          oracle.gave(id, node.decode(id).workerId, self.name, world.elapsedMs)
        }
        self.servedAt = world.elapsedMs
      } catch (error) {
        if (!(error instanceof IdsError)) throw error
        self.refusal = String(error)
      }
      await process.sleep(chance.between(1, 40))
    }
    await node.close()
    await process.sleep(chance.between(1, 500))
  }
}

async function askTime(
  peer: NodeAddress,
  process: SimulatedProcess,
  all: ReadonlyMap<string, ModelNode>,
): Promise<number> {
  const asked = [...all.values()].find(({ address }) => formatAddress(address) === formatAddress(peer))
  await process.sleep(process.chance.between(0.2, 6))
  if (!asked?.process.isAlive || asked.process.isFrozen) throw new Error('no answer')
  return asked.process.wallNowMs
}

/** Looking at the clock takes time, so that who waits for it by looking comes to an end at a standing instant too. */
function lookedAtClock(process: SimulatedProcess): { now(): number } {
  let instant = -1
  let looks = 0
  return {
    now: () => {
      if (process.world.elapsedMs !== instant) looks = 0
      instant = process.world.elapsedMs
      return process.wallNowMs + Math.max(0, ++looks - 100) * 0.25
    },
  }
}
