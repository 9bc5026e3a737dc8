import type { Runtime, TimerHandle } from '@firebreak/core'
import type { Chance } from './chance.ts'
import type { SimulatedWorld } from './simulated-world.ts'

/** How a simulated process is set up. */
export interface SimulatedProcessOptions {
  /** How far its wall clock is ahead of the world's, in milliseconds. @default 0 */
  readonly wallOffsetMs?: number
  /** How many milliseconds its wall clock gains in a second. @default 0 */
  readonly wallDriftMsPerSecond?: number
  /** Timers fire up to this much late, as on a busy machine. @default 0 */
  readonly timerLatenessMs?: number
}

const noTimer: TimerHandle = { cancel() {} }

/**
 * A process: a `Runtime` of its own, and a life that can be frozen and ended. Whatever happens to it (a timer, bytes that
 * arrive) is an event that it owns: while it is frozen its events wait, when it is dead they never happen.
 */
export class SimulatedProcess {
  readonly name: string
  readonly world: SimulatedWorld
  readonly chance: Chance
  readonly runtime: Runtime
  readonly #timerLatenessMs: number
  #wallOffsetMs: number
  #driftPerMs: number
  #driftSinceMs: number
  #state: 'running' | 'frozen' | 'dead' = 'running'
  /** What waits while it is frozen, and after that until everything before it has happened. */
  readonly #held: (() => void)[] = []
  readonly #onKill = new Set<() => void>()
  readonly #onThaw = new Set<() => void>()

  constructor(world: SimulatedWorld, name: string, chance: Chance, options: SimulatedProcessOptions = {}) {
    this.world = world
    this.name = name
    this.chance = chance
    this.#wallOffsetMs = options.wallOffsetMs ?? 0
    this.#driftPerMs = (options.wallDriftMsPerSecond ?? 0) / 1000
    this.#driftSinceMs = world.nowMs
    this.#timerLatenessMs = options.timerLatenessMs ?? 0
    this.runtime = {
      clock: { now: () => world.nowMs },
      wallClock: { now: () => this.wallNowMs },
      timers: {
        setTimeout: (callback, delayMs) => this.#setTimer(callback, delayMs, false),
        setInterval: (callback, periodMs) => this.#setTimer(callback, periodMs, true),
        setImmediate: (callback) => this.schedule(0, callback),
      },
      random: chance.next,
      newId: chance.newId,
    }
  }

  get isAlive(): boolean {
    return this.#state !== 'dead'
  }

  get isFrozen(): boolean {
    return this.#state === 'frozen'
  }

  /** What its wall clock shows. */
  get wallNowMs(): number {
    const { nowMs } = this.world
    return nowMs + this.#wallOffsetMs + (nowMs - this.#driftSinceMs) * this.#driftPerMs
  }

  /** Sets the wall clock forward (or back) at once; the steady clock does not notice. */
  stepWallClock(ms: number): void {
    this.note(`wall clock steps ${ms} ms`)
    this.#wallOffsetMs += ms
  }

  /** From now on the wall clock gains this much in a second. */
  driftWallClock(msPerSecond: number): void {
    this.#wallOffsetMs = this.wallNowMs - this.world.nowMs
    this.#driftSinceMs = this.world.nowMs
    this.#driftPerMs = msPerSecond / 1000
  }

  /** Runs a callback after a delay, as an event of this process. */
  schedule(delayMs: number, callback: () => void): TimerHandle {
    if (!this.isAlive) return noTimer
    let isCancelled = false
    const handle = this.world.schedule(delayMs, () => {
      this.perform(() => {
        if (!isCancelled) callback()
      })
    })
    return {
      cancel: () => {
        isCancelled = true
        handle.cancel()
      },
    }
  }

  /** Runs something that happens to this process: now, when it is thawed, or never. What it throws ends the process. */
  perform(event: () => void): void {
    if (this.#state === 'dead') return
    if (this.#state === 'running' && this.#held.length === 0) {
      this.#happen(event)
      return
    }
    this.#held.push(event)
    if (this.#state === 'running') this.#catchUpSoon()
  }

  /** Starts work of this process; where it rejects, the process has crashed. */
  start(work: () => Promise<unknown>): void {
    this.schedule(0, () => {
      work().catch((error: unknown) => {
        if (this.isAlive) this.crash(error)
      })
    })
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => void this.runtime.timers.setTimeout(resolve, ms))
  }

  /** Stops it as SIGSTOP does: clocks go on, nothing else does. */
  freeze(): void {
    if (this.#state !== 'running') return
    this.note('frozen')
    this.#state = 'frozen'
  }

  thaw(): void {
    if (this.#state !== 'frozen') return
    this.note('thawed')
    this.#state = 'running'
    for (let left = this.#held.length; left > 0; left--) this.#catchUpSoon()
    for (const listener of [...this.#onThaw]) listener()
  }

  /** Ends it as SIGKILL does: its timers never fire, its connections are gone. */
  kill(): void {
    if (this.#state === 'dead') return
    this.note('killed')
    this.#state = 'dead'
    this.#held.length = 0
    for (const listener of this.#onKill) listener()
    this.#onKill.clear()
  }

  /** Calls back when it is killed; returns a function that ends this. */
  onKill(listener: () => void): () => void {
    this.#onKill.add(listener)
    return () => this.#onKill.delete(listener)
  }

  /** Calls back whenever it is thawed; returns a function that ends this. */
  onThaw(listener: () => void): () => void {
    this.#onThaw.add(listener)
    return () => this.#onThaw.delete(listener)
  }

  /** An error that nobody caught: the world's run fails with it. */
  crash(error: unknown): void {
    this.note(`crashed: ${error instanceof Error ? error.message : String(error)}`)
    this.kill()
    this.world.fail(error)
  }

  /** A line in the world's log. */
  note(what: string): void {
    this.world.note(`${this.name} ${what}`)
  }

  /** One event of those that were held, behind what the world does at this moment anyway. */
  #catchUpSoon(): void {
    this.world.schedule(0, () => {
      if (this.#state !== 'running') return
      const event = this.#held.shift()
      if (event !== undefined) this.#happen(event)
    })
  }

  #happen(event: () => void): void {
    try {
      event()
    } catch (error) {
      this.crash(error)
    }
  }

  #setTimer(callback: () => void, delayMs: number, isRepeated: boolean): TimerHandle {
    // As Node: no timer is due within a millisecond.
    const periodMs = Math.max(1, delayMs)
    const late = (): number => (this.#timerLatenessMs > 0 ? this.chance.between(0, this.#timerLatenessMs) : 0)
    if (!isRepeated) return this.schedule(periodMs + late(), callback)
    let current: TimerHandle = noTimer
    let isCancelled = false
    const fire = (): void => {
      callback()
      if (!isCancelled) current = this.schedule(periodMs + late(), fire)
    }
    current = this.schedule(periodMs + late(), fire)
    return {
      cancel: () => {
        isCancelled = true
        current.cancel()
      },
    }
  }
}
