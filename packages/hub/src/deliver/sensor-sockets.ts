import type { TimerHandle } from '@firebreak/core'
import type { RawData, WebSocket } from 'ws'
import type { HubCore } from '../hub-core.ts'
import { type AppTokenCheck, closeCodes, encodeHeartbeat, SensorSession } from './sensor-session.ts'

/** Heartbeats are spread over so many steps: ten thousand at once would be a burst each second. */
const heartbeatSteps = 10
/** A connection that says no hello is nobody's. */
const helloTimeoutMs = 10_000

interface Connection {
  readonly session: SensorSession
  readonly step: number
  readonly openedAt: number
}

/** The sensors' WebSockets. */
export class SensorSockets {
  readonly #core: HubCore
  readonly #checkToken: AppTokenCheck
  readonly #connections = new Set<Connection>()
  readonly #timers: TimerHandle[] = []
  #opened = 0
  #step = 0

  constructor(core: HubCore, checkToken: AppTokenCheck) {
    this.#core = core
    this.#checkToken = checkToken
    core.onInvalidation((bytes) => {
      for (const { session } of this.#connections) session.forward(bytes)
    })
  }

  start(): void {
    const { timers, heartbeatMs } = this.#core.options
    this.#timers.push(timers.setInterval(() => this.#beat(), heartbeatMs / heartbeatSteps))
  }

  /** A new connection, with the token of its upgrade request where it had one. */
  add(socket: WebSocket, headerToken?: string): void {
    const channel = {
      send: (bytes: Uint8Array) => socket.send(bytes),
      get bufferedBytes() {
        return socket.bufferedAmount
      },
      close: (code: number, reason: string) => socket.close(code, reason),
    }
    const session = new SensorSession(this.#core, channel, this.#checkToken, headerToken)
    const connection = { session, step: this.#opened++ % heartbeatSteps, openedAt: this.#core.now() }
    this.#connections.add(connection)
    socket.on('message', (data: RawData, isBinary: boolean) => {
      if (!isBinary) session.close(closeCodes.protocol, 'sensors speak binary frames')
      else session.receive(data as Buffer)
    })
    const end = () => {
      session.end()
      this.#connections.delete(connection)
    }
    socket.on('close', end)
    // The reason is the other side's or the network's: `close` follows.
    socket.on('error', (error: Error & { code?: string }) => {
      if (error.code === 'WS_ERR_UNSUPPORTED_MESSAGE_LENGTH') this.#core.collector.countRefusal('too-large')
    })
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
    for (const { session } of this.#connections) session.close(closeCodes.goingAway, 'the hub stops')
    this.#connections.clear()
  }

  #beat(): void {
    this.#step = (this.#step + 1) % heartbeatSteps
    const now = this.#core.now()
    // All sensors of a service are told the same.
    const frames = new Map<string, Uint8Array>()
    for (const { session, step, openedAt } of this.#connections) {
      if (step !== this.#step) continue
      const { serviceId } = session
      if (serviceId === undefined) {
        if (now - openedAt > helloTimeoutMs) session.close(closeCodes.refused, 'no hello came')
        continue
      }
      let frame = frames.get(serviceId)
      if (frame === undefined) {
        frame = encodeHeartbeat(this.#core, serviceId)
        frames.set(serviceId, frame)
      }
      session.forward(frame)
    }
  }
}
