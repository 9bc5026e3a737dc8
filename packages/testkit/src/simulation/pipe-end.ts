import type { SimulatedProcess } from './simulated-process.ts'

/** An error as the system's sockets give it. */
export class NetworkError extends Error {
  readonly code: 'ECONNRESET' | 'ECONNREFUSED' | 'EPIPE' | 'ENOBUFS' | 'ETIMEDOUT'

  constructor(code: NetworkError['code'], what: string) {
    super(`${what}: ${code}`)
    this.name = 'NetworkError'
    this.code = code
  }
}

/** What an end needs of its connection. */
export interface PipeSide {
  /** Sends bytes, which are the pipe's own from then on. */
  send(part: Uint8Array | 'end'): void
  /** Bytes that the other end has not read. */
  outstanding(): number
  /** The other end may send on. */
  resumed(): void
  closed(): void
  readonly windowBytes: number
  readonly maxOutstandingBytes: number
}

type EndState = 'connecting' | 'open' | 'ending' | 'closed'

/**
 * One end of a connection. The callbacks are set by its holder, and are called as events of its process: a frozen
 * process gets nothing, a dead one never will.
 */
export class PipeEnd {
  readonly process: SimulatedProcess
  /** The other end's name, for messages. */
  readonly peer: string
  onConnect: () => void = () => {}
  onData: (bytes: Uint8Array) => void = () => {}
  /** The other end will send no more; unless `allowsHalfOpen`, this end ends too. */
  onEnd: () => void = () => {}
  /** It is over; the error says why, where it was not in order. */
  onClose: (error: NetworkError | undefined) => void = () => {}
  onDrain: () => void = () => {}
  allowsHalfOpen = false
  readonly #side: PipeSide
  readonly #offKill: () => void
  #state: EndState
  #hasPeerEnded = false
  #isPaused = false
  #wantsDrain = false
  #early: Uint8Array[] = []

  constructor(process: SimulatedProcess, peer: string, side: PipeSide, state: 'connecting' | 'open') {
    this.process = process
    this.peer = peer
    this.#side = side
    this.#state = state
    this.#offKill = process.onKill(() => this.destroy())
  }

  get isOpen(): boolean {
    return this.#state === 'open' || this.#state === 'ending'
  }

  get isConnecting(): boolean {
    return this.#state === 'connecting'
  }

  get isClosed(): boolean {
    return this.#state === 'closed'
  }

  /** Whether what arrives has to wait: it has paused, or its process is frozen. */
  get isWaiting(): boolean {
    return this.#isPaused || this.process.isFrozen
  }

  /** Bytes beyond the window, as a socket's writable length. */
  get queuedBytes(): number {
    return Math.max(0, this.#side.outstanding() - this.#side.windowBytes)
  }

  /** Sends bytes (a frame, on a framed pipe); a copy is taken. False where the window is full: wait for `onDrain`. */
  write(bytes: Uint8Array): boolean {
    if (this.#state === 'closed' || this.#state === 'ending' || !this.process.isAlive || bytes.length === 0) return true
    const copy = Uint8Array.prototype.slice.call(bytes)
    if (this.#state === 'connecting') {
      this.#early.push(copy)
      return true
    }
    this.#side.send(copy)
    if (this.#side.outstanding() > this.#side.maxOutstandingBytes) {
      this.destroy(new NetworkError('ENOBUFS', `${this.peer} reads too slowly`))
      return false
    }
    if (this.queuedBytes === 0) return true
    this.#wantsDrain = true
    return false
  }

  /** Sends no more, behind all that was written. */
  end(): void {
    if (this.#state === 'connecting') this.destroy()
    if (this.#state !== 'open') return
    this.#side.send('end')
    this.#state = 'ending'
    if (this.#hasPeerEnded) this.#close(undefined)
  }

  /** Closes at once; the other end learns of it as of an end. */
  destroy(error?: NetworkError): void {
    if (this.#state === 'closed') return
    if (this.#state !== 'ending') this.#side.send('end')
    this.#close(error)
  }

  pause(): void {
    this.#isPaused = true
  }

  resume(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#side.resumed()
  }

  /** The network's side: something has arrived. */
  received(part: Uint8Array | 'opened' | 'refused' | 'end' | 'reset'): void {
    if (this.#state === 'closed') return
    if (typeof part !== 'string') {
      this.process.perform(() => {
        if (this.#state !== 'closed') this.onData(part)
      })
    } else if (part === 'opened') {
      this.#opened()
    } else if (part === 'refused') {
      this.#close(new NetworkError('ECONNREFUSED', `connect to ${this.peer}`))
    } else if (part === 'reset') {
      this.#close(new NetworkError('ECONNRESET', `connection to ${this.peer}`))
    } else {
      this.#peerEnded()
    }
  }

  /** The network's side: the other end has read. */
  drained(): void {
    if (!this.#wantsDrain || this.queuedBytes > 0) return
    this.#wantsDrain = false
    this.process.schedule(0, () => this.#state !== 'closed' && this.onDrain())
  }

  #opened(): void {
    this.#state = 'open'
    this.process.perform(() => {
      if (this.#state === 'closed') return
      const early = this.#early
      this.#early = []
      for (const bytes of early) this.#side.send(bytes)
      this.onConnect()
    })
  }

  #peerEnded(): void {
    this.#hasPeerEnded = true
    this.process.perform(() => {
      if (this.#state !== 'closed') this.onEnd()
    })
    if (this.#state === 'ending') this.#close(undefined)
    else if (!this.allowsHalfOpen) this.end()
  }

  #close(error: NetworkError | undefined): void {
    this.#state = 'closed'
    this.#early = []
    this.#offKill()
    this.#side.closed()
    // As with a socket, the event comes later, even to the side that closed it.
    this.process.schedule(0, () => this.onClose(error))
  }
}
