import type { Runtime, TimerHandle } from '@firebreak/core'
import type { WebSocket } from 'ws'
import type { TableDelivery } from '../deliver/table-delivery.ts'
import type { HubViews } from '../views/hub-views.ts'

const everyMs = 1000
/** A change is shown sooner than the next second, but not more often than this. */
const changeMs = 250
/** A page that does not read is left out until it does. */
const maxBufferedBytes = 1024 * 1024

/** Pushes the overview to every console: once a second, and soon after the table changed. */
export class LiveSockets {
  readonly #views: HubViews
  readonly #delivery: TableDelivery
  readonly #runtime: Runtime
  readonly #sockets = new Set<WebSocket>()
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

  add(socket: WebSocket): void {
    this.#sockets.add(socket)
    const remove = () => void this.#sockets.delete(socket)
    socket.on('close', remove)
    socket.on('error', remove)
    socket.send(JSON.stringify(this.#views.overview()))
  }

  close(): void {
    this.#timer?.cancel()
    for (const socket of this.#sockets) socket.close(1001, 'the hub stops')
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
    for (const socket of this.#sockets) if (socket.bufferedAmount < maxBufferedBytes) socket.send(text)
  }
}
