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
import { formatAddress, type NodeAddress } from '../address/node-address.ts'
import { IdsError } from '../errors.ts'
import type { CachedWorker, WorkerCache } from '../node/cache-file.ts'
import { SnowflakeNode } from '../node/snowflake-node.ts'
import { workerCount } from '../snowflake/layout.ts'
import { RedisRegistry } from '../workers/redis-registry.ts'

/*
 * Five nodes get worker ids from one Redis and give ids all the while; three of them have a cache file. They are stopped,
 * killed and frozen in the middle, cut off for a moment, and Redis is killed. What else happens is one of four kinds, drawn
 * for each run:
 *
 * - Redis is emptied or comes back empty, at times while a node stands still;
 * - Redis goes back to an older picture, as a failover does;
 * - nothing is lost, Redis is frozen and out of reach, and the nodes' clocks walk and jump both ways, up to hours;
 * - worker ids are scarce: six for five nodes, recycled after a second, while clocks jump some seconds ahead and back,
 *   often in the moment in which their node is killed.
 *
 * What the guide leaves open does not happen together here: data lost while a clock is behind, or while a node runs on its
 * file because it cannot reach the registry, or lost and then put back.
 *
 * Laws:
 *
 * - No id is given twice, by whomever.
 * - The ids of one worker id ascend, over all nodes and lives.
 * - Two nodes never give ids of one worker id in turns: who may have lost it has stopped.
 * - When all is well again, every node serves: within the time that a new worker id takes, also after a clock that was
 *   hours ahead.
 *
 * `npm run simulate -- --mutants --model ids` takes each mend out and says which seed of the quick run finds it.
 */

/** What `npm test` plays. */
export const quickSeeds: readonly number[] = Array.from({ length: 16 }, (_, index) => index + 9)

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

/** Ahead for less than two reports, so that the registry may not have heard of it. */
const scarce: FaultChoice[] = [
  { kind: 'clockTrip', targets: names, forMs: [60, 400], amount: [5500, 10_000], weight: 12 },
]
const kinds = [emptying, goingBack, walking, scarce]
/** In the scarce kind, worker ids from this one up belong to somebody else for ever. */
const scarceFrom = 6

/** The faults of one run: of two kinds, some scenes first. */
export function idsSchedule(chance: Chance): FaultSchedule {
  const kind = chance.pick(kinds)
  const choices = [...both, ...kind]
  const scene = kind === emptying ? emptiedScenes(chance) : kind === scarce ? scarceScene(chance) : []
  const fromMs = Math.max(1500, ...scene.map(({ atMs, forMs = 0 }) => atMs + forMs + settleMs))
  const count = Math.round((30 * (runMs - fromMs)) / (runMs - 1500))
  const drawn = randomSchedule(chance, choices, { count, fromMs, toMs: runMs })
  const schedule = [...scene, ...drawn.flatMap((fault) => [fault, ...companions(fault, kind, chance)])]
  schedule.sort((a, b) => a.atMs - b.atMs)
  // A picture is put back before the next is taken.
  let freeAt = 0
  return schedule.filter(({ kind, atMs, amount = 0 }) => {
    if (kind !== 'loseWrites') return true
    const isApart = atMs > freeAt
    if (isApart) freeAt = atMs + amount
    return isApart
  })
}

/**
 * Four times the registry is emptied while somebody does not see it at once. The first node, which has worker 0, has a
 * link that flaps, and another begins with that number, is killed while it holds it, and begins again. Then a node stands
 * still while the others share the numbers out anew; then one whose connection ends meanwhile.
 * In the end a node has lost its number, is killed, and cannot reach the registry when it begins again.
 */
function emptiedScenes(chance: Chance): Fault[] {
  const at = (from: number, to: number) => Math.round(chance.between(from, to))
  const begins = chance.pick(names.filter((name) => !hasFile(name)))
  const isLost = chance.pick(names.filter(hasFile))
  const first = at(1600, 2100)
  const flaps = Array.from(
    { length: 150 },
    (_, index): Fault => ({ kind: 'cut', target: names[0]!, atMs: first + index * 4 }),
  )
  const still = (atMs: number): Fault[] => [
    { kind: 'freeze', target: chance.pick(names.filter(hasFile)), atMs, forMs: at(2300, 2600) },
    { kind: 'flush', target: 'redis', atMs: atMs + at(50, 200) },
  ]
  const ended = still(first + 5600)
  return [
    { kind: 'flush', target: 'redis', atMs: first },
    ...flaps,
    { kind: 'kill', target: begins, atMs: first - 40, forMs: 45 },
    { kind: 'kill', target: begins, atMs: first + at(60, 90), forMs: 10 },
    ...still(first + 2600),
    ...ended,
    { kind: 'cut', target: ended[0]!.target, atMs: first + 6600 },
    { kind: 'flush', target: 'redis', atMs: first + 9000 },
    { kind: 'kill', target: isLost, atMs: first + 9800, forMs: 20 },
    { kind: 'blackHole', target: isLost, atMs: first + 9790, forMs: 1500 },
  ]
}

/** A node's clock is ahead for a moment, and the node gives its worker id up and is gone; then others need a number. */
function scarceScene(chance: Chance): Fault[] {
  const at = (from: number, to: number) => Math.round(chance.between(from, to))
  // Without a file nobody gives ids that far ahead.
  const [gone, ...others] = names.filter(hasFile).sort(() => chance.next() - 0.5)
  const trip = (target: string, atMs: number): Fault => {
    return { kind: 'clockTrip', target, atMs, forMs: at(150, 400), amount: at(9000, 9900) }
  }
  const first = at(1600, 2100)
  return [
    trip(gone!, first),
    { kind: 'kill', target: gone!, atMs: first + at(2000, 2200), forMs: 4000 },
    ...others.map((name) => trip(name, first + at(2800, 3200))),
  ]
}

/**
 * What tends to happen at a bad moment: a node stands still while its registry is emptied, another begins just then and is
 * killed while it holds its new worker id, a third dies with its clock ahead.
 */
function companions({ kind, atMs, target, forMs = 0 }: Fault, of: readonly FaultChoice[], chance: Chance): Fault[] {
  const at = (from: number, to: number) => Math.round(chance.between(from, to))
  if (kind === 'flush') {
    const begins = chance.pick(names)
    const choices: Fault[][] = [
      [{ kind: 'freeze', target: chance.pick(names), atMs: atMs - at(0, 200), forMs: at(2000, 3200) }],
      [
        { kind: 'kill', target: begins, atMs: atMs - 40, forMs: 45 },
        { kind: 'kill', target: begins, atMs: atMs + at(60, 120), forMs: at(5, 60) },
      ],
      [],
    ]
    return chance.pick(choices)
  }
  if (of !== scarce || kind !== 'clockTrip') return []
  // It comes back and gives its worker id up; then it is away for so long that the number is anybody's.
  const dies: Fault = { kind: 'kill', target, atMs: atMs + forMs - at(1, 30), forMs: at(50, 600) }
  const isGone: Fault = { kind: 'kill', target, atMs: dies.atMs + at(1200, 2500), forMs: at(2000, 5000) }
  return chance.next() < 0.7 ? [dies, isGone] : []
}

/** Who gave an id last. */
interface Giver {
  readonly name: string
  readonly atMs: number
}

/** All ids that were ever given, and what must be true of them. */
class Oracle {
  readonly #given = new Map<bigint, string>()
  readonly #last = new Map<number, { readonly id: bigint; readonly name: string }>()
  /** The last two givers of each worker id. */
  readonly #givers = new Map<number, { readonly current: Giver; readonly before: Giver | undefined }>()

  get count(): number {
    return this.#given.size
  }

  gave(id: bigint, workerId: number, name: string, atMs: number): void {
    const other = this.#given.get(id)
    if (other !== undefined) throw new BrokenLaw(`${id} of worker ${workerId} was given by ${other} and by ${name}`)
    this.#given.set(id, name)
    const last = this.#last.get(workerId)
    if (last !== undefined && id < last.id)
      throw new BrokenLaw(`${id} of worker ${workerId}, by ${name}, is below the last one, by ${last.name}`)
    this.#last.set(workerId, { id, name })
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
  const isScarce = schedule.some(({ kind, amount = 0 }) => kind === 'clockTrip' && amount < 10_000)
  if (isScarce) fillRegistry(valkey, world.nowMs)
  const all = new Map<string, ModelNode>()
  const begin = (name: string): void => {
    const process = world.process(name)
    const known = all.get(name)
    const node = known ?? new ModelNode(name, process)
    node.process = process
    process.stepWallClock(node.clockOffsetMs)
    all.set(name, node)
    process.start(() => live(node, process, network, all, oracle, isScarce ? 1000 : 86_400_000))
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
  // The first of them has worker 0.
  begin(names[0]!)
  await world.run(300)
  for (const name of names.slice(1)) begin(name)
  // Steps of a clock are the machine's: the next life of the process has them too.
  player.play(schedule.filter(({ kind }) => kind !== 'clockStep'))
  for (const { atMs, target, amount = 0 } of schedule.filter(({ kind }) => kind === 'clockStep'))
    world.schedule(atMs - world.elapsedMs, () => stepClock(target, amount))
  await world.run(runMs - world.elapsedMs)
  player.undoAll()
  for (const { name, clockOffsetMs } of all.values()) stepClock(name, -clockOffsetMs)
  // A scarce worker id comes back once its time has come, and gone by for long enough.
  await world.run(isScarce ? restMs + 8000 : restMs)
  for (const { name, servedAt, refusal } of all.values()) {
    // An abandoned number is its node's for as long as that lives, so that scarce ones may be used up.
    if (isScarce && refusal.includes('worker ids are taken')) continue
    if (world.elapsedMs - servedAt > 500) throw new BrokenLaw(`${name} does not serve in peace: ${refusal}`)
  }
  return { calls: oracle.count, faults: schedule.length }
}

/** Leaves a few worker ids to the nodes: the others are of nodes that were heard of in a far future. */
function fillRegistry(valkey: VirtualValkey, nowMs: number): void {
  const timestamp = nowMs + 1e9
  const record = JSON.stringify({
    ip: '10.0.0.2',
    port: 1,
    timestamp,
    mark: timestamp,
    owner: 'other',
    runsAlone: true,
  })
  const rows = Array.from({ length: workerCount - scarceFrom }, (_, index) => [String(scarceFrom + index), record])
  valkey.ask('HSET', '{firebreak:ids}:leaf_forever', ...rows.flat())
}

/** A process that starts its node until it may, gives ids, and starts again where it is told to stop. */
async function live(
  self: ModelNode,
  process: SimulatedProcess,
  network: VirtualNetwork,
  all: ReadonlyMap<string, ModelNode>,
  oracle: Oracle,
  recycleAfterMs: number,
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
        registry: new RedisRegistry({
          redis: client,
          address,
          sessionTimeoutMs: 600,
          requestTimeoutMs: 300,
          recycleAfterMs,
          runtime,
        }),
        recycleAfterMs,
        address,
        ...(hasFile(self.name) ? { cacheFile: self.file.path, openCache: () => self.file.openBy(process) } : {}),
        reportEveryMs,
        settleMs,
        registryAheadMs: 600,
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
