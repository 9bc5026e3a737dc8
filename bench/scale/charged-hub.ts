import type { Redis } from '@firebreak/redis'
import { type SimulatedProcess, SimulatedRedis, type SimulatedWorld, type VirtualNetwork } from '@firebreak/testkit'
import type { SensorChannel } from '../../packages/hub/src/deliver/sensor-channel.ts'
import type { SensorSessions } from '../../packages/hub/src/deliver/sensor-sessions.ts'
import { HubCore } from '../../packages/hub/src/hub-core.ts'
import { RedisStore } from '../../packages/hub/src/store/redis-store.ts'
import type { FrameCosts } from './frame-costs.ts'

/** How often a hub's core gets on with what waits. */
export const stepMs = 5
/** A frame that waits longer says that the hub is behind. */
const behindMs = 50

interface Waiting {
  readonly bytes: Uint8Array
  readonly rows: number
  readonly sinceMs: number
  readonly receive: (bytes: Uint8Array) => void
}

/** Where a sensor listens. */
export interface Listener {
  /** A frame of the hub leaves its core at this time. */
  onFrame(frame: Uint8Array, atMs: number): void
  onClose(): void
}

/** A sensor's side of its connection. */
export interface Connection {
  send(bytes: Uint8Array, rows: number): void
  drop(): void
}

/**
 * A real hub core on virtual time, with one core's time to spend: each frame, in or out, takes what was measured for it,
 * frames wait for those before them, and what share of its time it was busy is what its governor is told.
 */
export class ChargedHub {
  readonly name: string
  readonly process: SimulatedProcess
  core!: HubCore
  bytesIn = 0
  bytesOut = 0
  busyMs = 0
  #sessions!: SensorSessions
  readonly #costs: FrameCosts
  readonly #world: SimulatedWorld
  #waiting: Waiting[] = []
  #next = 0
  /** Work that was begun and does not fit into the steps so far. */
  #debtMs = 0
  #loadMark = { busyMs: 0, atMs: 0 }

  private constructor(world: SimulatedWorld, name: string, costs: FrameCosts) {
    this.#world = world
    this.name = name
    this.#costs = costs
    this.process = world.process(name)
  }

  static async open(
    world: SimulatedWorld,
    network: VirtualNetwork,
    name: string,
    costs: FrameCosts,
  ): Promise<ChargedHub> {
    const hub = new ChargedHub(world, name, costs)
    const redis = new SimulatedRedis(hub.process, network, 'redis:6379', { connectTimeoutMs: 2000 })
    const store = new RedisStore(redis as unknown as Redis, { newId: hub.process.runtime.newId })
    hub.core = await HubCore.open(store, { hubId: name, runtime: hub.process.runtime, loadOf: () => hub.#load() })
    hub.core.start()
    hub.#sessions = hub.core.sensorSessions()
    hub.#sessions.start()
    hub.process.runtime.timers.setInterval(() => hub.#step(), stepMs)
    return hub
  }

  get isAlive(): boolean {
    return this.process.isAlive
  }

  /** How long the frame that is next has waited. */
  get delayMs(): number {
    const next = this.#waiting[this.#next]
    return (next === undefined ? 0 : this.#world.elapsedMs - next.sinceMs) + this.#debtMs
  }

  connect(listener: Listener): Connection {
    let receive: (bytes: Uint8Array) => void = () => {}
    let closed: () => void = () => {}
    let isOpen = true
    const channel: SensorChannel = {
      bufferedBytes: 0,
      send: (frame) => {
        if (!isOpen) return
        this.#charge(this.#costs.socketUs / 1000)
        this.bytesOut += frame.length
        listener.onFrame(frame, this.#world.elapsedMs + this.#debtMs)
      },
      onFrame: (take) => void (receive = take),
      onClose: (end) => void (closed = end),
      close: () => {
        isOpen = false
        listener.onClose()
      },
    }
    this.#sessions.open(channel)
    return {
      send: (bytes, rows) => {
        this.bytesIn += bytes.length
        const sinceMs = this.#world.elapsedMs
        this.#waiting.push({ bytes, rows, sinceMs, receive: (frame) => isOpen && receive(frame) })
      },
      drop: () => {
        if (!isOpen) return
        isOpen = false
        closed()
      },
    }
  }

  #charge(ms: number): void {
    this.busyMs += ms
    this.#debtMs += ms
  }

  #step(): void {
    this.#debtMs = Math.max(0, this.#debtMs - stepMs)
    const { reportUs, rowUs, socketUs } = this.#costs
    while (this.#next < this.#waiting.length && this.#debtMs < stepMs) {
      const { bytes, rows, receive } = this.#waiting[this.#next]!
      this.#next++
      this.#charge((socketUs + reportUs + rows * rowUs) / 1000)
      receive(bytes)
    }
    if (this.#next < 10_000 && this.#next < this.#waiting.length) return
    this.#waiting = this.#waiting.slice(this.#next)
    this.#next = 0
  }

  #load(): number {
    const { elapsedMs } = this.#world
    const { busyMs, atMs } = this.#loadMark
    this.#loadMark = { busyMs: this.busyMs, atMs: elapsedMs }
    // A hub that is behind is busy, however little it did.
    if (this.delayMs > behindMs) return 1
    return elapsedMs === atMs ? 0 : Math.min(1, (this.busyMs - busyMs) / (elapsedMs - atMs))
  }
}
