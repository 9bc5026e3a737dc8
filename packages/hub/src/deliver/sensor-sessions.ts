import { encodeJsonFrame, type Runtime, type TimerHandle, type WatchedCluster } from '@firebreak/core'
import { type AppGrant, anyApp } from '../access/credential.ts'
import type { Collector } from '../collect/collector.ts'
import type { HotKeys } from '../decide/hot-keys.ts'
import type { ApiProblem } from '../errors.ts'
import type { BarredSensors } from '../fleet/barred-sensors.ts'
import type { Fleet } from '../fleet/fleet.ts'
import type { Instance } from '../fleet/host-register.ts'
import type { InvalidationLane } from '../lane/invalidation-lane.ts'
import type { InspectedSensor, Inspections } from './inspections.ts'
import { LoadProbes } from './load-probes.ts'
import { closeCodes, type SensorChannel } from './sensor-channel.ts'
import { SensorSession } from './sensor-session.ts'
import type { TableDelivery } from './table-delivery.ts'

/** What a sensor may report, by its hello's token or its connection's credentials; undefined: it is refused. */
export type LetIn = (token: string | undefined) => AppGrant | ApiProblem

/** What serving sensors needs. */
export interface SensorService {
  readonly runtime: Runtime
  readonly hubId: string
  readonly heartbeatMs: number
  /** A process that reconnects may have one that has not ended yet, or a few; of more, the oldest is ended. */
  readonly maxInstanceConnections: number
  readonly collector: Collector
  readonly fleet: Fleet
  readonly keys: HotKeys
  readonly delivery: TableDelivery
  readonly lane: InvalidationLane
  readonly barred: BarredSensors
  /** Questions about keys that are waiting for an answer. */
  readonly inspections: Inspections
  /** The clusters whose changes the hub itself sees. */
  readonly watched: () => WatchedCluster[]
  /** Maps a key's text to the one that is stored and shown. */
  readonly outside: (text: string) => string
}

/** Heartbeats are spread over this many steps: ten thousand at once would be a burst each second. */
const heartbeatSteps = 10
/** A connection that says no hello is nobody's. */
const helloTimeoutMs = 10_000

interface Connection {
  readonly session: SensorSession
  readonly step: number
  readonly openedAt: number
}

/** All connected sensors: they get heartbeats and the lane's invalidations. */
export class SensorSessions {
  readonly #service: SensorService
  readonly #connections = new Set<Connection>()
  readonly #probes: LoadProbes
  readonly #leaveLane: () => void
  #timer: TimerHandle | undefined
  #opened = 0
  #step = 0

  constructor(service: SensorService) {
    this.#service = service
    this.#probes = new LoadProbes(service.keys.autopilot)
    this.#leaveLane = service.lane.join((bytes) => {
      for (const { session } of this.#connections) session.forward(bytes)
    })
  }

  start(): void {
    const { runtime, heartbeatMs } = this.#service
    this.#timer = runtime.timers.setInterval(() => this.#beat(), heartbeatMs / heartbeatSteps)
  }

  /** A new connection. */
  open(channel: SensorChannel, letIn: LetIn = () => anyApp): SensorSession {
    const beat = (serviceId: string) => this.#heartbeat(serviceId)
    const { keys, runtime } = this.#service
    const session = new SensorSession(this.#service, channel, beat, letIn, (sender, nodes, hostId) => {
      const agreed = this.#probes.take(sender, nodes, runtime.clock.now())
      if (agreed.length > 0) keys.takeLoad(agreed, hostId)
    })
    const openedAt = runtime.clock.now()
    const connection = { session, step: this.#opened++ % heartbeatSteps, openedAt }
    this.#connections.add(connection)
    channel.onFrame((frame) => {
      const wasKnown = session.instance !== undefined
      session.receive(frame)
      if (!wasKnown && session.instance !== undefined) this.#endOldest(session.instance)
    })
    channel.onClose(() => {
      session.end()
      this.#connections.delete(connection)
    })
    return session
  }

  /** Processes of these services (all services if none is named) that can be asked about a key of the cluster. */
  inspectable(redisClusterId: string, services: readonly string[]): InspectedSensor[] {
    const found: InspectedSensor[] = []
    for (const { session } of this.#connections) {
      const sensor = session.inspected
      if (sensor === undefined || !sensor.redisClusterIds.includes(redisClusterId)) continue
      if (services.length === 0 || services.includes(sensor.serviceId)) found.push(sensor)
    }
    return found
  }

  /** Closes connections whose token or certificate is no longer accepted. */
  dropInvalid(): void {
    for (const { session } of this.#connections) session.checkGrant()
  }

  close(): void {
    this.#timer?.cancel()
    this.#leaveLane()
    for (const { session } of this.#connections) session.close(closeCodes.goingAway, 'the hub is stopping')
    this.#connections.clear()
  }

  /** Every connection may hold an unfinished frame. */
  #endOldest(instance: Instance): void {
    if (instance.connections <= this.#service.maxInstanceConnections) return
    for (const { session } of this.#connections) {
      if (session.instance !== instance) continue
      session.close(closeCodes.refused, 'the process has reconnected')
      return
    }
  }

  #beat(): void {
    this.#step = (this.#step + 1) % heartbeatSteps
    const now = this.#service.runtime.clock.now()
    if (this.#step === 0)
      this.#probes.ask(
        [...this.#connections].map(({ session }) => session),
        now,
      )
    // All sensors of a service get the same frame.
    const frames = new Map<string, Uint8Array>()
    for (const { session, step, openedAt } of this.#connections) {
      if (step !== this.#step) continue
      const { serviceId } = session
      if (serviceId === undefined) {
        if (now - openedAt > helloTimeoutMs) session.close(closeCodes.refused, 'no hello received')
        continue
      }
      let frame = frames.get(serviceId)
      if (frame === undefined) {
        frame = this.#heartbeat(serviceId)
        frames.set(serviceId, frame)
      }
      session.forward(frame)
    }
  }

  /** The heartbeat of a service's sensors at this moment. */
  #heartbeat(serviceId: string): Uint8Array {
    const { runtime, delivery, collector, keys, lane, watched: watchedNow } = this.#service
    const watched = watchedNow()
    return encodeJsonFrame('heartbeat', 0, {
      hubTime: runtime.clock.now(),
      epoch: delivery.epoch,
      version: delivery.view(serviceId).version,
      laneHead: lane.head,
      isOff: delivery.isOff,
      ...collector.governor.pace,
      ...(keys.isAlone && { isAlone: true }),
      ...(watched.length > 0 && { watched }),
    })
  }
}
