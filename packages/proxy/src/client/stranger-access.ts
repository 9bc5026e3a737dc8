import type { Runtime } from '@firebreak/core'
import type { ConnectTarget, TransportKind } from '../transport/transport.ts'

/** How long Redis' last word is believed: as long as other changes of users may go unnoticed. */
const believedMs = 5000

/**
 * Whether Redis answers clients that have shown no password, by what it last said. It is asked over a connection of its
 * own, and nobody waits for that once it has answered: of a Redis that is stuck or gone the proxy has most to tell.
 */
export class StrangerAccess {
  readonly #runtime: Runtime
  readonly #transports: TransportKind
  readonly #target: () => ConnectTarget
  #askedAt = Number.NEGATIVE_INFINITY
  #areLetIn = false

  constructor(runtime: Runtime, transports: TransportKind, target: () => ConnectTarget) {
    this.#runtime = runtime
    this.#transports = transports
    this.#target = target
  }

  /** False also before Redis has said so. */
  get areLetIn(): boolean {
    this.refresh()
    return this.#areLetIn
  }

  learn(areLetIn: boolean): void {
    this.#areLetIn = areLetIn
  }

  refresh(): void {
    const { clock, timers } = this.#runtime
    const now = clock.now()
    if (now - this.#askedAt < believedMs) return
    this.#askedAt = now
    let reply = ''
    const owner = {
      onData: (bytes: Buffer, length: number) => {
        reply += bytes.toString('latin1', 0, length)
        if (!reply.includes('\n')) return
        this.learn(!reply.startsWith('-NOAUTH'))
        transport.destroy()
      },
      onDrain() {},
      onClose: () => late.cancel(),
    }
    const transport = this.#transports.connect(this.#target(), owner, () => void transport.write(Buffer.from(ping)))
    const late = timers.setTimeout(() => transport.destroy(), believedMs)
  }
}

const ping = 'PING\r\n'
