import { connect, createServer, type Server, type Socket } from 'node:net'

/** What the proxy does to the bytes that pass it; change it at any time. */
export interface Faults {
  /** Bytes from the server wait this long and then come in one piece. */
  serverDelayMs: number
  /** Bytes from the client wait this long. */
  clientDelayMs: number
  /** Bytes of both directions are swallowed; connections stay open. */
  isBlackHole: boolean
  /** New connections are closed at once. */
  refusesConnections: boolean
  /** At most this many client writes (about commands, unpipelined) a second go through; the rest queue. */
  commandsPerSecond: number | undefined
}

interface Link {
  readonly index: number
  readonly client: Socket
  readonly server: Socket
}

/** A TCP proxy on loopback that delays, swallows, limits and cuts, for tests of what survives it. */
export class FaultProxy {
  readonly faults: Faults = {
    serverDelayMs: 0,
    clientDelayMs: 0,
    isBlackHole: false,
    refusesConnections: false,
    commandsPerSecond: undefined,
  }
  /** Bytes seen from clients and from the server. */
  readonly bytes = { client: 0, server: 0 }
  #connections = 0
  readonly #links = new Set<Link>()
  readonly #server: Server
  readonly #target: { host: string; port: number }
  #nextSlot = 0

  private constructor(target: { host: string; port: number }) {
    this.#target = target
    this.#server = createServer({ noDelay: true }, (client) => this.#accept(client))
  }

  /** Starts a proxy on a free port before `port`. */
  static async start(port: number, host = '127.0.0.1'): Promise<FaultProxy> {
    const proxy = new FaultProxy({ host, port })
    await new Promise<void>((resolve, reject) => {
      proxy.#server.on('error', reject)
      proxy.#server.listen(0, '127.0.0.1', resolve)
    })
    return proxy
  }

  get port(): number {
    return (this.#server.address() as { port: number }).port
  }

  /** How many connections were ever accepted. */
  get connectionCount(): number {
    return this.#connections
  }

  get openConnections(): number {
    return this.#links.size
  }

  /** Cuts every connection, as a crash does. */
  cut(): void {
    for (const link of this.#links) {
      link.client.resetAndDestroy()
      link.server.destroy()
    }
  }

  /** Stops taking the server's bytes for one connection (0 is the first ever accepted), or goes on taking them. */
  pauseServer(index: number, isPaused = true): void {
    for (const link of this.#links) {
      if (link.index !== index) continue
      if (isPaused) link.server.pause()
      else link.server.resume()
    }
  }

  async close(): Promise<void> {
    this.cut()
    await new Promise((resolve) => this.#server.close(resolve))
  }

  #accept(client: Socket): void {
    if (this.faults.refusesConnections) {
      client.resetAndDestroy()
      return
    }
    this.#connections++
    const server = connect({ ...this.#target, noDelay: true })
    const link = { index: this.#connections - 1, client, server }
    this.#links.add(link)
    this.#pump(client, server, 'client')
    this.#pump(server, client, 'server')
    const end = () => {
      this.#links.delete(link)
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      socket.on('error', end)
      socket.on('close', end)
    }
  }

  #pump(from: Socket, to: Socket, side: 'client' | 'server'): void {
    let waiting: Buffer[] = []
    from.on('data', (chunk) => {
      this.bytes[side] += chunk.length
      if (this.faults.isBlackHole) return
      const delayMs = (side === 'server' ? this.faults.serverDelayMs : this.faults.clientDelayMs) + this.#throttle(side)
      if (delayMs <= 0 && waiting.length === 0) {
        to.write(chunk)
        return
      }
      waiting.push(chunk)
      if (waiting.length > 1 && this.faults.commandsPerSecond === undefined) return
      setTimeout(() => {
        const all = Buffer.concat(waiting)
        waiting = []
        if (!this.faults.isBlackHole && !to.destroyed && all.length > 0) to.write(all)
      }, delayMs)
    })
  }

  /** A slot in the node's fixed capacity: the milliseconds until this write's turn. */
  #throttle(side: 'client' | 'server'): number {
    const rate = this.faults.commandsPerSecond
    if (rate === undefined || side === 'server') return 0
    const now = performance.now()
    this.#nextSlot = Math.max(now, this.#nextSlot) + 1000 / rate
    return this.#nextSlot - now
  }
}
