import { connect, createServer, type Server, type Socket } from 'node:net'
import { RequestParser } from '@firebreak/core/resp'

/** What the proxy does to passing bytes; may be changed at any time. */
export interface Faults {
  /** Bytes from the server are held for this long and then arrive in one piece. */
  serverDelayMs: number
  /** Bytes from the client wait this long. */
  clientDelayMs: number
  /** Bytes of both directions are swallowed; connections stay open. */
  isBlackHole: boolean
  /** New connections are closed at once. */
  refusesConnections: boolean
  /** At most this many commands per second pass, over all connections, as at a saturated node; the rest are queued. */
  commandsPerSecond: number | undefined
  /** All of this, and cuts, only apply to connections on which a client has requested tracking. */
  onlyTracking: boolean
}

interface Link {
  readonly index: number
  readonly client: Socket
  readonly server: Socket
  isTracking: boolean
}

/** A TCP proxy on loopback that delays, swallows, limits and cuts traffic, to test what survives it. */
export class FaultProxy {
  readonly faults: Faults = {
    serverDelayMs: 0,
    clientDelayMs: 0,
    isBlackHole: false,
    refusesConnections: false,
    commandsPerSecond: undefined,
    onlyTracking: false,
  }
  /** Bytes seen from clients and from the server. */
  readonly bytes = { client: 0, server: 0 }
  #connections = 0
  readonly #links = new Set<Link>()
  readonly #server: Server
  #target: { host: string; port: number }
  #nextTurn = 0

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
      if (this.faults.onlyTracking && !link.isTracking) continue
      link.client.resetAndDestroy()
      link.server.destroy()
    }
  }

  /** From now on another server is behind it, as after a failover; connections to the previous one are cut. */
  retarget(port: number): void {
    this.#target = { ...this.#target, port }
    this.cut()
  }

  /** Stops reading the server's bytes for one connection (0 is the first ever accepted), or resumes. */
  pauseServer(index: number, isPaused = true): void {
    for (const link of this.#links) {
      if (link.index !== index) continue
      if (isPaused) link.server.pause()
      else link.server.resume()
    }
  }

  async close(): Promise<void> {
    this.faults.onlyTracking = false
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
    const link: Link = { index: this.#connections - 1, client, server, isTracking: false }
    this.#links.add(link)
    this.#pump(link, client, server, 'client')
    this.#pump(link, server, client, 'server')
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

  #pump(link: Link, from: Socket, to: Socket, side: 'client' | 'server'): void {
    const parser = new RequestParser()
    let partial: Uint8Array = new Uint8Array(0)
    let held: Uint8Array[] = []
    from.on('data', (chunk) => {
      this.bytes[side] += chunk.length
      if (side === 'client' && !link.isTracking) link.isTracking = chunk.includes('TRACKING')
      if (this.faults.onlyTracking && !link.isTracking) {
        to.write(chunk)
        return
      }
      if (this.faults.isBlackHole) return
      if (side === 'client' && this.faults.commandsPerSecond !== undefined) {
        partial = this.#commandByCommand(Buffer.concat([partial, chunk]), parser, to)
        return
      }
      const delayMs = side === 'server' ? this.faults.serverDelayMs : this.faults.clientDelayMs
      if (delayMs <= 0 && held.length === 0) {
        to.write(chunk)
        return
      }
      held.push(chunk)
      if (held.length > 1) return
      setTimeout(() => {
        const all = Buffer.concat(held)
        held = []
        if (!this.faults.isBlackHole && !to.destroyed && all.length > 0) to.write(all)
      }, delayMs)
    })
  }

  /** Passes on each complete command when its turn in the node's capacity comes; returns the incomplete rest. */
  #commandByCommand(bytes: Uint8Array, parser: RequestParser, to: Socket): Uint8Array {
    let start = 0
    for (;;) {
      const end = parser.parse(bytes, start, bytes.length)
      if (end === 0) return bytes.subarray(start)
      const command = bytes.subarray(start, end)
      start = end
      const now = performance.now()
      this.#nextTurn =
        Math.max(now, this.#nextTurn) + 1000 / (this.faults.commandsPerSecond ?? Number.POSITIVE_INFINITY)
      setTimeout(() => {
        if (!to.destroyed) to.write(command)
      }, this.#nextTurn - now)
    }
  }
}
