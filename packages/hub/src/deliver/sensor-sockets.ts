import type { Duplex } from 'node:stream'
import type { TimerHandle } from '@firebreak/core'
import { type RawData, WebSocket } from 'ws'
import type { HubCore } from '../hub-core.ts'
import { type AppTokenCheck, closeCodes, encodeHeartbeat, SensorSession } from './sensor-session.ts'
import { wireMessage } from './wire-message.ts'

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
  /** The bytes that are being told to many, and how they go over the wire. */
  #shared: { readonly bytes: Uint8Array; readonly message: Buffer } | undefined
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

  /** A new connection and the stream below it, with the token of its upgrade request where it had one. */
  add(socket: WebSocket, stream: Duplex, headerToken?: string): void {
    const channel = {
      send: (bytes: Uint8Array) => socket.send(bytes),
      // Past `ws`, which writes every message whole and at once, so that ours never lands inside another.
      sendShared: (bytes: Uint8Array) => {
        if (socket.readyState === WebSocket.OPEN) stream.write(this.#messageOf(bytes))
      },
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

  #messageOf(bytes: Uint8Array): Buffer {
    if (this.#shared?.bytes !== bytes) this.#shared = { bytes, message: wireMessage(bytes) }
    return this.#shared.message
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
