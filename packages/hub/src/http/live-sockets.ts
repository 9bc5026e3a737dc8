import type { TimerHandle } from '@firebreak/core'
import type { WebSocket } from 'ws'
import type { HubCore } from '../hub-core.ts'
import { overview } from '../views/overview.ts'

const everyMs = 1000
/** A change is shown sooner than the next second, but not more often than this. */
const changeMs = 250
/** A page that does not read is left out until it does. */
const maxBufferedBytes = 1024 * 1024

/** Pushes the overview to every console: once a second, and soon after the table changed. */
export class LiveSockets {
  readonly #core: HubCore
  readonly #sockets = new Set<WebSocket>()
  readonly #timers: TimerHandle[] = []
  #shownVersion = 0
  #lastPushAt = 0

  constructor(core: HubCore) {
    this.#core = core
  }

  start(): void {
    this.#timers.push(this.#core.options.timers.setInterval(() => this.#pushIfDue(), changeMs))
  }

  add(socket: WebSocket): void {
    this.#sockets.add(socket)
    const remove = () => void this.#sockets.delete(socket)
    socket.on('close', remove)
    socket.on('error', remove)
    socket.send(JSON.stringify(overview(this.#core)))
  }

  close(): void {
    for (const timer of this.#timers) timer.cancel()
    for (const socket of this.#sockets) socket.close(1001, 'the hub stops')
    this.#sockets.clear()
  }

  #pushIfDue(): void {
    const now = this.#core.now()
    const { version } = this.#core.delivery
    if (version === this.#shownVersion && now - this.#lastPushAt < everyMs) return
    this.#shownVersion = version
    this.#lastPushAt = now
    if (this.#sockets.size === 0) return
    const text = JSON.stringify(overview(this.#core))
    for (const socket of this.#sockets) if (socket.bufferedAmount < maxBufferedBytes) socket.send(text)
  }
}
