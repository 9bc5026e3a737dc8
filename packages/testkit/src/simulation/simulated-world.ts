import type { TimerHandle } from '@firebreak/core'
import { Chance } from './chance.ts'
import { EventLog } from './event-log.ts'
import { EventQueue } from './event-queue.ts'
import { SimulatedProcess, type SimulatedProcessOptions } from './simulated-process.ts'

/** How a world is made. */
export interface SimulatedWorldOptions {
  /** Equal seeds give equal worlds, to the byte. */
  readonly seed: number
  /** The wall clock's time at the start, in milliseconds since 1970. @default 1,700,000,000,000 */
  readonly startMs?: number
  /** How many of the last lines the event log keeps. @default 2000 */
  readonly maxLogLines?: number
  /** This many events at one instant count as an endless loop. @default 1,000,000 */
  readonly maxEventsPerInstant?: number
}

/** Immediates that one turn of Node's loop runs: more save turns, fewer let other work of the process in sooner. */
const eventsPerTurn = 64

/**
 * One seed, one virtual clock, one queue of events: everything that a simulation does happens in here.
 *
 * How it stays the same twice. Nothing reads real time, real chance or a real socket: processes have a `Runtime` of the
 * world, Redis is a `VirtualValkey`, and between them lies a `VirtualNetwork`. Events happen one at a time, by time and
 * then by order of making; between two of them every promise that can settle has settled. For that each event runs in
 * an immediate of its own: Node empties its queues of ticks and microtasks behind each, whatever their depth, so no
 * number of "flushes" is guessed. Code under test must therefore wait for nothing real: no worker, file, real timer or
 * asynchronous crypto, else its promises settle at some later event, and not the same one twice.
 *
 * How a model is written:
 *
 * 1. Build the world: servers, network, processes, and the code under test on `process.runtime`.
 *
 *        const world = new SimulatedWorld({ seed })
 *        const network = new VirtualNetwork(world, { delayMs: [0.1, 2] })
 *        const valkey = new VirtualValkey(world, 'redis-1').listen(network, 'redis-1:6379')
 *        const app = world.process('app-1', { wallOffsetMs: 40 })
 *        const redis = new SimulatedRedis(app, network, 'redis-1:6379')
 *
 * 2. Say which faults can happen, as data: `new FaultPlayer(world)` with `network.faults`, `valkey.faults` and your own
 *    kinds, a schedule from `randomSchedule(world.chance.fork('faults'), …)`, or the one that you were handed.
 * 3. Start the workload with `process.start(async () => …)`; it waits with `process.sleep(ms)` and draws from
 *    `process.chance`. A rejection or a throw that nobody catches is a crash, and the run fails with it.
 * 4. `await world.run(ms)` moves time; `await world.finish(promise)` moves it until a promise has settled.
 * 5. An oracle holds what the guides promise. Whoever was told "done" counts as done; whoever was told nothing (a lost
 *    connection, a deadline) may or may not have happened, and the oracle must allow both. Check while it runs what
 *    must always hold, and at the end, with all faults undone and some time passed, what must hold in the end.
 * 6. Throw where a law is broken, with the sentence that it breaks; add what a reader needs by `world.note`.
 *
 * `runSeeds` plays a model for many seeds and shrinks the schedule of one that fails. `example-model.test.ts` is a whole
 * model in forty lines.
 */
export class SimulatedWorld {
  readonly seed: number
  readonly chance: Chance
  readonly log: EventLog
  readonly startMs: number
  readonly #queue = new EventQueue()
  readonly #processes = new Map<string, number>()
  readonly #maxEventsPerInstant: number
  #elapsedMs = 0
  #notedMs = -1
  #notedText = ''
  #events = 0
  #eventsOfInstant = 0
  #failure: { readonly error: unknown } | undefined
  #isDriven = false

  constructor(options: SimulatedWorldOptions) {
    this.seed = options.seed
    this.startMs = options.startMs ?? 1_700_000_000_000
    this.chance = new Chance(options.seed)
    this.log = new EventLog(options.maxLogLines)
    this.#maxEventsPerInstant = options.maxEventsPerInstant ?? 1_000_000
  }

  /** The world's time: milliseconds since 1970. */
  get nowMs(): number {
    return this.startMs + this.#elapsedMs
  }

  /** Milliseconds since the world began. */
  get elapsedMs(): number {
    return this.#elapsedMs
  }

  /** How many events wait: timers and bytes under way. */
  get pending(): number {
    return this.#queue.size
  }

  /** How many events have happened. */
  get events(): number {
    return this.#events
  }

  /** A new process. A name that was taken before is a later life of that process, with chance of its own. */
  process(name: string, options?: SimulatedProcessOptions): SimulatedProcess {
    const life = (this.#processes.get(name) ?? 0) + 1
    this.#processes.set(name, life)
    return new SimulatedProcess(this, name, this.chance.fork(`process ${name} ${life}`), options)
  }

  /** An event that belongs to no process; it happens after `delayMs`, behind those already due then. */
  schedule(delayMs: number, callback: () => void): TimerHandle {
    const event = this.#queue.add(this.#elapsedMs + Math.max(0, delayMs), callback)
    return { cancel: () => this.#queue.cancel(event) }
  }

  /** A line in the event log, with the time before it. */
  note(what: string): void {
    // Many lines have the same time, and writing it is what costs most of a line.
    if (this.#notedMs !== this.#elapsedMs) {
      this.#notedMs = this.#elapsedMs
      this.#notedText = this.#elapsedMs.toFixed(3)
    }
    this.log.add(`${this.#notedText} ${what}`)
  }

  /** Ends the run with an error; the first one counts. */
  fail(error: unknown): void {
    this.#failure ??= { error }
  }

  /** Lets `ms` milliseconds pass. Rejects with what nobody caught. */
  run(ms: number): Promise<void> {
    return this.#drive(this.#elapsedMs + ms, () => false)
  }

  /** Moves time until the condition holds, which is asked after every event. Rejects where it does not in time. */
  async runUntil(condition: () => boolean, withinMs = 60_000): Promise<void> {
    let isMet = false
    await this.#drive(this.#elapsedMs + withinMs, () => (isMet = condition()))
    if (!isMet && !condition()) throw new Error(`not met within ${withinMs} ms of virtual time`)
  }

  /** Moves time until a promise has settled, and gives what it gave. */
  async finish<T>(promise: Promise<T>, withinMs = 60_000): Promise<T> {
    let isSettled = false
    const settled = (): void => void (isSettled = true)
    promise.then(settled, settled)
    await this.runUntil(() => isSettled, withinMs)
    return promise
  }

  async #drive(untilMs: number, isDone: () => boolean): Promise<void> {
    if (this.#isDriven) throw new Error('this world is being run already: await one run before the next')
    this.#isDriven = true
    const onRejection = (error: unknown): void => this.fail(error)
    process.on('unhandledRejection', onRejection)
    try {
      await new Promise<void>((resolve) => this.#turn(untilMs, isDone, resolve))
    } finally {
      process.off('unhandledRejection', onRejection)
      this.#isDriven = false
    }
    if (this.#failure !== undefined) throw this.#failure.error
  }

  /** Runs events, each in an immediate of its own, until it is done. */
  #turn(untilMs: number, isDone: () => boolean, resolve: () => void): void {
    let isEnded = false
    let left = eventsPerTurn
    const one = (): void => {
      if (isEnded) return
      if (this.#failure !== undefined || isDone() || !this.#happen(untilMs)) {
        isEnded = true
        resolve()
      } else if (--left === 0) {
        this.#turn(untilMs, isDone, resolve)
      }
    }
    for (let index = 0; index < eventsPerTurn; index++) setImmediate(one)
  }

  /** Lets the next event happen; false where none is due, and the time is up. */
  #happen(untilMs: number): boolean {
    const atMs = this.#queue.nextAtMs()
    if (atMs === undefined || atMs > untilMs) {
      this.#elapsedMs = untilMs
      return false
    }
    if (atMs > this.#elapsedMs) {
      this.#elapsedMs = atMs
      this.#eventsOfInstant = 0
    }
    this.#events++
    if (++this.#eventsOfInstant > this.#maxEventsPerInstant) {
      this.fail(new Error(`${this.#maxEventsPerInstant} events at one instant: time does not move on`))
      return true
    }
    try {
      this.#queue.take()!.run()
    } catch (error) {
      this.fail(error)
    }
    return true
  }
}
