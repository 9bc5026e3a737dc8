import {
  decodeFrame,
  decodeJsonPayload,
  encodeJsonFrame,
  type HeartbeatPayload,
  keyText,
  type WelcomePayload,
} from '@firebreak/core'
import type { SimulatedWorld } from '@firebreak/testkit'
import { type ChargedHub, type Connection, stepMs } from './charged-hub.ts'
import { flashKey, type ReportPool, redisClusterId, serviceId } from './report-pool.ts'

interface Sensor {
  readonly number: number
  connection: Connection | undefined
  hub: ChargedHub | undefined
  intervalMs: number
  samplingFloor: number
  sequence: number
  reportedAtMs: number
  isCut: boolean
  /** When the table that it has said that the flash key is hot. */
  toldAtMs: number | undefined
}

/** What is known of a frame that goes to many. */
interface Known {
  readonly pace: { readonly intervalMs: number; readonly samplingFloor: number } | undefined
  readonly tellsFlash: boolean
}

const accessesPerSecond = 100
/** As it stands in a table. */
const flashText = JSON.stringify(keyText(flashKey))
/** What a flash crowd adds to each. */
export const flashPerSecond = 20
/** Whoever lost its hub tries the next within this. */
const reconnectMs = 1000

/**
 * Sensors that cost next to nothing: no shield, no socket of their own. They say hello, report at the pace that they are
 * asked for, follow the table, and go to another hub when theirs is gone.
 */
export class LightSensors {
  readonly sensors: readonly Sensor[]
  readonly #world: SimulatedWorld
  readonly #hubs: readonly ChargedHub[]
  readonly #pool: ReportPool
  readonly #due = new Map<number, Sensor[]>()
  readonly #known = new WeakMap<Uint8Array, Known>()
  #flashFromMs = Number.POSITIVE_INFINITY

  constructor(world: SimulatedWorld, hubs: readonly ChargedHub[], pool: ReportPool, count: number) {
    this.#world = world
    this.#hubs = hubs
    this.#pool = pool
    this.sensors = Array.from({ length: count }, (_, number) => ({
      number,
      connection: undefined,
      hub: undefined,
      intervalMs: 1000,
      samplingFloor: 1,
      sequence: 0,
      reportedAtMs: 0,
      isCut: false,
      toldAtMs: undefined,
    }))
    world.schedule(0, () => this.#tick())
  }

  get connected(): number {
    return this.sensors.filter(({ connection }) => connection !== undefined).length
  }

  /** Lets all connect within a time. */
  join(withinMs: number): void {
    for (const sensor of this.sensors) this.#at(sensor, this.#world.chance.between(0, withinMs))
  }

  /** From now on everybody wants one key. */
  beginFlash(): void {
    this.#flashFromMs = this.#world.elapsedMs
  }

  /** A hub is gone, and its sensors notice. */
  hubLost(hub: ChargedHub): void {
    for (const sensor of this.sensors) if (sensor.hub === hub) this.#lose(sensor)
  }

  /** One in `parts` sensors reaches no hub for a while. */
  cut(parts: number, forMs: number): void {
    for (const sensor of this.sensors) {
      if (sensor.number % parts !== 0) continue
      sensor.isCut = true
      sensor.connection?.drop()
      this.#world.schedule(forMs, () => {
        sensor.isCut = false
        this.#lose(sensor)
      })
    }
  }

  #lose(sensor: Sensor): void {
    sensor.connection = undefined
    sensor.hub = undefined
    this.#at(sensor, this.#world.chance.between(0, reconnectMs))
  }

  #at(sensor: Sensor, delayMs: number): void {
    const step = Math.ceil((this.#world.elapsedMs + Math.max(stepMs, delayMs)) / stepMs)
    const due = this.#due.get(step)
    if (due === undefined) this.#due.set(step, [sensor])
    else due.push(sensor)
  }

  #tick(): void {
    const step = Math.round(this.#world.elapsedMs / stepMs)
    const due = this.#due.get(step) ?? []
    this.#due.delete(step)
    for (const sensor of due) {
      if (sensor.isCut) continue
      if (sensor.connection === undefined) this.#connect(sensor)
      else this.#report(sensor)
    }
    this.#world.schedule((step + 1) * stepMs - this.#world.elapsedMs, () => this.#tick())
  }

  #connect(sensor: Sensor): void {
    const alive = this.#hubs.filter(({ isAlive }) => isAlive)
    const hub = alive[sensor.number % alive.length]!
    sensor.hub = hub
    sensor.reportedAtMs = this.#world.elapsedMs
    const connection = hub.connect({
      onFrame: (frame, atMs) => sensor.connection === connection && !sensor.isCut && this.#heard(sensor, frame, atMs),
      onClose: () => sensor.connection === connection && this.#lose(sensor),
    })
    sensor.connection = connection
    const name = `sensor-${sensor.number}`
    const hello = { serviceId, hostId: name, instanceId: name, agent: 'light', redisClusterIds: [redisClusterId] }
    connection.send(encodeJsonFrame('hello', 1, { ...hello, epoch: '', version: 0, sentAt: this.#world.nowMs }), 0)
    this.#at(sensor, sensor.intervalMs)
  }

  #report(sensor: Sensor): void {
    const { elapsedMs } = this.#world
    const tookMs = elapsedMs - sensor.reportedAtMs
    sensor.reportedAtMs = elapsedMs
    const flashMs = Math.min(tookMs, Math.max(0, elapsedMs - this.#flashFromMs))
    const { bytes, rows } = this.#pool.report({
      // Whole tens of milliseconds, so that bodies can be shared.
      accesses: Math.max(1, Math.round(tookMs / 100) * (accessesPerSecond / 10)),
      flash: Math.floor((flashMs / 1000) * flashPerSecond + this.#world.chance.next()),
      samplingFloor: sensor.samplingFloor,
      sensor: sensor.number,
      sequence: ++sensor.sequence,
      nowMs: this.#world.nowMs,
    })
    sensor.connection!.send(bytes, rows)
    this.#at(sensor, sensor.intervalMs)
  }

  #heard(sensor: Sensor, bytes: Uint8Array, atMs: number): void {
    let known = this.#known.get(bytes)
    if (known === undefined) {
      const frame = decodeFrame(bytes)
      const tellsPace = frame.type === 'welcome' || frame.type === 'heartbeat'
      const tellsTable = frame.type === 'delta' || frame.type === 'snapshot'
      known = {
        pace: tellsPace ? (decodeJsonPayload(frame) as WelcomePayload | HeartbeatPayload) : undefined,
        tellsFlash: tellsTable && Buffer.from(bytes).includes(flashText),
      }
      this.#known.set(bytes, known)
    }
    if (known.pace !== undefined) {
      sensor.intervalMs = known.pace.intervalMs
      sensor.samplingFloor = known.pace.samplingFloor
    }
    if (known.tellsFlash) sensor.toldAtMs ??= atMs
  }
}
