import type { Runtime, TimerHandle } from '@firebreak/core'
import type { WebSocket } from 'ws'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HubViews } from '../views/hub-views.ts'
import type { Caller } from './access-guard.ts'

const everyMs = 1000
/** A change is pushed before the next second, but not more often than this. */
const changeMs = 250
/** A page that does not read is skipped until it does. */
const maxBufferedBytes = 1024 * 1024

/** Pushes the overview to every console: once a second, and soon after the table changed. */
export class LiveSockets {
  readonly #views: HubViews
  readonly #delivery: TableDelivery
  readonly #runtime: Runtime
  readonly #sockets = new Map<WebSocket, Caller>()
  #timer: TimerHandle | undefined
  #shownVersion = 0
  #lastPushAt = 0

  constructor(views: HubViews, delivery: TableDelivery, runtime: Runtime) {
    this.#views = views
    this.#delivery = delivery
    this.#runtime = runtime
  }

  start(): void {
    this.#timer = this.#runtime.timers.setInterval(() => this.#pushIfDue(), changeMs)
  }

  add(socket: WebSocket, caller: Caller): void {
    this.#sockets.set(socket, caller)
    const remove = () => void this.#sockets.delete(socket)
    socket.on('close', remove)
    socket.on('error', remove)
    socket.send(JSON.stringify(this.#views.overview()))
  }

  /** Ends connections whose token, password or session is no longer accepted. */
  dropInvalid(): void {
    for (const [socket, { isValid }] of this.#sockets) if (!isValid()) socket.close(4003, 'sign in again')
  }

  close(): void {
    this.#timer?.cancel()
    for (const socket of this.#sockets.keys()) socket.close(1001, 'the hub is stopping')
    this.#sockets.clear()
  }

  #pushIfDue(): void {
    const now = this.#runtime.clock.now()
    const { version } = this.#delivery
    if (version === this.#shownVersion && now - this.#lastPushAt < everyMs) return
    this.#shownVersion = version
    this.#lastPushAt = now
    if (this.#sockets.size === 0) return
    const text = JSON.stringify(this.#views.overview())
    for (const socket of this.#sockets.keys()) if (socket.bufferedAmount < maxBufferedBytes) socket.send(text)
  }
}
