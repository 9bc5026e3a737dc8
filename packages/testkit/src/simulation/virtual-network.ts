import type { Chance } from './chance.ts'
import type { FaultKinds } from './fault-schedule.ts'
import { PipeEnd, type PipeSide } from './pipe-end.ts'
import { type Part, PipeStream, type Way } from './pipe-stream.ts'
import type { SimulatedProcess } from './simulated-process.ts'
import type { SimulatedWorld } from './simulated-world.ts'

/** How a network carries bytes. */
export interface VirtualNetworkOptions {
  /** How long a part travels: from and to, drawn for each. @default [0.05, 0.5] */
  readonly delayMs?: readonly [number, number]
  /** How often a write arrives in two pieces. @default 0.05 */
  readonly splitProbability?: number
  /** Bytes in transit or unread before a writer has to wait. @default 262,144 */
  readonly windowBytes?: number
  /** Bytes in transit or unread at which a connection is closed. @default 67,108,864 */
  readonly maxOutstandingBytes?: number
}

/** Takes the server's end of each new connection. */
export type Acceptor = (end: PipeEnd) => void

interface Listener {
  readonly process: SimulatedProcess
  readonly accept: Acceptor
}

interface Trouble {
  readonly target: string
  readonly kind: 'held' | 'heldTo' | 'heldFrom' | 'slow' | 'slowReader' | 'refused'
  readonly amount: number
}

interface Connection {
  readonly from: string
  readonly to: string
  readonly streams: readonly [PipeStream, PipeStream]
}

const defaultSlowMs = 200
const defaultReadBytesPerSecond = 2000

/**
 * Connections between processes by address, with every fault that a network has.
 *
 * A connection is two streams. Each part of a stream is delayed by chance of its own, so that what two connections carry
 * changes places and what one carries never does. A black hole holds parts as lost packets do, which are sent again:
 * what was under way arrives when it ends, unless somebody gave up before. Kinds of faults, each on a `target`:
 *
 * | kind         | what it does                                                                          |
 * | ------------ | ------------------------------------------------------------------------------------- |
 * | `cut`        | connections are reset; a random beginning of what was under way still arrives         |
 * | `halfOpen`   | connections die and no end is told; new ones work                                     |
 * | `blackHole`  | nothing arrives, neither bytes nor new connections nor the news of an end             |
 * | `deafTo`     | nothing that is sent to the target arrives (the other way works)                      |
 * | `deafFrom`   | nothing that the target sends arrives                                                 |
 * | `slow`       | every part takes up to `amount` milliseconds longer                                   |
 * | `slowReader` | the target reads `amount` bytes a second                                              |
 * | `refuse`     | new connections are refused                                                           |
 */
export class VirtualNetwork {
  readonly #world: SimulatedWorld
  readonly #delayMs: readonly [number, number]
  readonly #splitProbability: number
  readonly #windowBytes: number
  readonly #maxOutstandingBytes: number
  readonly #chance: Chance
  readonly #listeners = new Map<string, Listener>()
  readonly #connections = new Set<Connection>()
  readonly #links = new Map<string, number>()
  readonly #troubles = new Set<Trouble>()
  readonly #delays = new Map<string, readonly [number, number]>()
  readonly #watched = new WeakSet<SimulatedProcess>()

  constructor(world: SimulatedWorld, options: VirtualNetworkOptions = {}) {
    this.#world = world
    this.#chance = world.chance.fork('network')
    this.#delayMs = options.delayMs ?? [0.05, 0.5]
    this.#splitProbability = options.splitProbability ?? 0.05
    this.#windowBytes = options.windowBytes ?? 256 * 1024
    this.#maxOutstandingBytes = options.maxOutstandingBytes ?? 64 * 1024 * 1024
  }

  /** How many connections are open. */
  get connections(): number {
    return this.#connections.size
  }

  /** Changes the delay for a target's links. */
  setDelay(target: string, delayMs: readonly [number, number]): void {
    this.#delays.set(target, delayMs)
  }

  /** Takes connections at an address, `host:port`, until its process dies or the returned function is called. */
  listen(process: SimulatedProcess, address: string, accept: Acceptor): () => void {
    if (this.#listeners.has(address)) throw new Error(`address ${address} is in use`)
    const listener: Listener = { process, accept }
    this.#listeners.set(address, listener)
    const stop = (): void => {
      if (this.#listeners.get(address) === listener) this.#listeners.delete(address)
    }
    process.onKill(stop)
    return stop
  }

  /** Opens a connection to an address; the end tells by `onConnect` or `onClose`. A framed one keeps writes whole. */
  connect(process: SimulatedProcess, address: string, options: { readonly isFramed?: boolean } = {}): PipeEnd {
    const isFramed = options.isFramed ?? false
    const link = `${process.name}>${address}`
    const number = (this.#links.get(link) ?? 0) + 1
    this.#links.set(link, number)
    const name = `${link}#${number}`
    let server: PipeEnd | undefined
    const there = new PipeStream(
      this.#world,
      this.#chance.fork(`${name} there`),
      this.#way(process.name, address, true),
      isFramed,
      () => server,
      (part) => {
        this.#log(name, '>', part)
        if (part === 'open') server = this.#accept(process, address, name, connection, back, there, () => client)
        else if (server !== undefined) this.#receive(server, part)
        client.drained()
      },
    )
    const back = new PipeStream(
      this.#world,
      this.#chance.fork(`${name} back`),
      this.#way(process.name, address, false),
      isFramed,
      () => client,
      (part) => {
        this.#log(name, '<', part)
        if (part === 'refused') this.#connections.delete(connection)
        this.#receive(client, part)
        server?.drained()
      },
    )
    const connection: Connection = { from: process.name, to: address, streams: [there, back] }
    this.#connections.add(connection)
    const client = new PipeEnd(
      process,
      address,
      this.#side(connection, there, back, () => server),
      'connecting',
    )
    this.#watch(process)
    there.send('open')
    return client
  }

  /** Kinds of faults for a `FaultPlayer`. */
  get faults(): FaultKinds {
    const lasting =
      (kind: Trouble['kind'], defaultAmount = 0) =>
      ({ target, amount = defaultAmount }: { readonly target: string; readonly amount?: number }) =>
        this.#trouble({ target, kind, amount })
    return {
      cut: ({ target }) => this.cut(target),
      halfOpen: ({ target }) => this.loseSilently(target),
      blackHole: lasting('held'),
      deafTo: lasting('heldTo'),
      deafFrom: lasting('heldFrom'),
      slow: lasting('slow', defaultSlowMs),
      slowReader: lasting('slowReader', defaultReadBytesPerSecond),
      refuse: lasting('refused'),
    }
  }

  /** Resets the target's connections. */
  cut(target: string): undefined {
    for (const connection of this.#connections) {
      if (!concerns(target, connection.from, connection.to)) continue
      for (const stream of connection.streams) stream.cut()
    }
  }

  /** The target's connections silently stop carrying anything. */
  loseSilently(target: string): undefined {
    for (const connection of this.#connections) {
      if (!concerns(target, connection.from, connection.to)) continue
      for (const stream of connection.streams) stream.isLost = true
    }
  }

  #trouble(trouble: Trouble): () => void {
    this.#troubles.add(trouble)
    return () => {
      this.#troubles.delete(trouble)
      for (const { streams } of this.#connections) for (const stream of streams) stream.pump()
    }
  }

  #way(from: string, to: string, isThere: boolean): Way {
    const strongest = (kind: Trouble['kind'], reader?: string): number | undefined => {
      let found: number | undefined
      for (const trouble of this.#troubles) {
        if (trouble.kind !== kind) continue
        const isMet = reader === undefined ? concerns(trouble.target, from, to) : isAt(trouble.target, reader)
        if (isMet && (found === undefined || trouble.amount > found)) found = trouble.amount
      }
      return found
    }
    const [writer, reader] = isThere ? [from, to] : [to, from]
    const delay = (): readonly [number, number] => {
      if (this.#delays.size === 0) return this.#delayMs
      const hostOf = to.slice(0, to.lastIndexOf(':'))
      for (const place of [`${from}>${to}`, to, hostOf, from]) {
        const own = this.#delays.get(place)
        if (own !== undefined) return own
      }
      return this.#delayMs
    }
    return {
      delayMs: (chance) => {
        const own = chance.between(...delay())
        const extra = this.#troubles.size === 0 ? undefined : strongest('slow')
        return extra === undefined ? own : own + chance.between(0, extra)
      },
      splits: (chance) => chance.happens(this.#splitProbability),
      isHeld: () => {
        if (this.#troubles.size === 0) return false
        if (strongest('held') !== undefined) return true
        return strongest('heldTo', reader) !== undefined || strongest('heldFrom', writer) !== undefined
      },
      bytesPerSecond: () => (this.#troubles.size === 0 ? undefined : strongest('slowReader', reader)),
    }
  }

  /** A first packet has come to an address: the server's end, or a refusal. */
  #accept(
    from: SimulatedProcess,
    address: string,
    name: string,
    connection: Connection,
    back: PipeStream,
    there: PipeStream,
    client: () => PipeEnd,
  ): PipeEnd | undefined {
    const listener = this.#listeners.get(address)
    let isRefused = listener === undefined
    for (const { kind, target } of this.#troubles) {
      if (kind === 'refused' && concerns(target, from.name, address)) isRefused = true
    }
    if (isRefused || listener === undefined) {
      back.send('refused')
      return undefined
    }
    const end = new PipeEnd(listener.process, name, this.#side(connection, back, there, client), 'open')
    this.#watch(listener.process)
    back.send('opened')
    listener.process.perform(() => listener.accept(end))
    return end
  }

  #side(connection: Connection, out: PipeStream, into: PipeStream, other: () => PipeEnd | undefined): PipeSide {
    return {
      send: (part) => out.send(part),
      outstanding: () => out.outstanding,
      resumed: () => into.pump(),
      closed: () => {
        if (other()?.isClosed) this.#connections.delete(connection)
      },
      windowBytes: this.#windowBytes,
      maxOutstandingBytes: this.#maxOutstandingBytes,
    }
  }

  #receive(end: PipeEnd, part: Part): void {
    if (part === 'open') return
    end.received(part)
  }

  /** What a frozen process did not read it reads when it goes on. */
  #watch(process: SimulatedProcess): void {
    if (this.#watched.has(process)) return
    this.#watched.add(process)
    process.onThaw(() => {
      for (const { streams } of this.#connections) for (const stream of streams) stream.pump()
    })
  }

  #log(name: string, direction: string, part: Part): void {
    this.#world.note(`${name} ${direction} ${typeof part === 'string' ? part : `${part.length} ${checksum(part)}`}`)
  }
}

/** Whether a fault's target means a link. */
function concerns(target: string, from: string, to: string): boolean {
  return target === `${from}>${to}` || isAt(target, from) || isAt(target, to)
}

/** Whether a target means a process or an address. */
function isAt(target: string, place: string): boolean {
  if (target === '*' || target === place) return true
  return place.length > target.length && place.startsWith(target) && place[target.length] === ':'
}

/** FNV-1a: enough to tell the bytes of two runs apart. */
function checksum(bytes: Uint8Array): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < bytes.length; index++) hash = Math.imul(hash ^ bytes[index]!, 0x01000193)
  return (hash >>> 0).toString(16)
}
