import type { Chance } from './chance.ts'
import type { PipeEnd } from './pipe-end.ts'
import type { SimulatedWorld } from './simulated-world.ts'

/** What travels: bytes, or a word about the connection itself. */
export type Part = Uint8Array | 'open' | 'opened' | 'refused' | 'end' | 'reset'

interface Flight {
  readonly part: Part
  readonly atMs: number
}

/** What a stream asks about the way it takes; the network answers by its faults. */
export interface Way {
  /** How long a part that leaves now travels. */
  delayMs(chance: Chance): number
  /** Whether a write is split in two that arrive apart. */
  splits(chance: Chance): boolean
  /** Whether nothing arrives at present. */
  isHeld(): boolean
  /** How many bytes a second are read at the far side, or undefined without limit. */
  bytesPerSecond(): number | undefined
}

/**
 * One direction of a connection. Parts arrive in the order in which they were sent, each after a delay of its own, and
 * never before the part ahead of it. What cannot be delivered yet (the way is held, the reader is frozen or has paused)
 * waits, and fills the window.
 */
export class PipeStream {
  /** Bytes that were sent and not read yet. */
  outstanding = 0
  /** Set where what is sent now and later is lost without a word. */
  isLost = false
  readonly #world: SimulatedWorld
  readonly #chance: Chance
  readonly #way: Way
  readonly #isFramed: boolean
  readonly #deliver: (part: Part) => void
  /** The reading end, or undefined if there is none yet. */
  readonly #reader: () => PipeEnd | undefined
  #flights: Flight[] = []
  #lastAtMs = 0
  #isScheduled = false

  constructor(
    world: SimulatedWorld,
    chance: Chance,
    way: Way,
    isFramed: boolean,
    reader: () => PipeEnd | undefined,
    deliver: (part: Part) => void,
  ) {
    this.#world = world
    this.#chance = chance
    this.#way = way
    this.#isFramed = isFramed
    this.#reader = reader
    this.#deliver = deliver
  }

  send(part: Part): void {
    if (typeof part === 'string') {
      this.#launch(part)
      return
    }
    this.outstanding += part.length
    if (!this.#isFramed && part.length > 1 && this.#way.splits(this.#chance)) {
      const at = 1 + this.#chance.below(part.length - 1)
      this.#launch(part.subarray(0, at))
      this.#launch(part.subarray(at))
    } else {
      this.#launch(part)
    }
  }

  /** Keeps a random beginning of what is under way, frames whole, and ends the connection behind it. */
  cut(): void {
    const kept: Flight[] = []
    let left = this.#chance.below(this.outstanding + 1)
    for (const flight of this.#flights) {
      const { part } = flight
      if (typeof part === 'string') kept.push(flight)
      else if (part.length <= left) {
        kept.push(flight)
        left -= part.length
      } else {
        if (left > 0 && !this.#isFramed) kept.push({ part: part.subarray(0, left), atMs: flight.atMs })
        break
      }
    }
    this.#flights = kept
    this.outstanding = 0
    for (const { part } of kept) if (typeof part !== 'string') this.outstanding += part.length
    this.#launch('reset')
  }

  /** Goes on where something held it up that no longer does. */
  pump(): void {
    const next = this.#flights[0]
    if (this.#isScheduled || next === undefined) return
    this.#schedule(Math.max(0, next.atMs - this.#world.elapsedMs))
  }

  drop(): void {
    this.#flights = []
    this.outstanding = 0
  }

  #launch(part: Part): void {
    if (this.isLost) return
    const atMs = Math.max(this.#lastAtMs, this.#world.elapsedMs + this.#way.delayMs(this.#chance))
    this.#lastAtMs = atMs
    this.#flights.push({ part, atMs })
    this.pump()
  }

  #schedule(delayMs: number): void {
    this.#isScheduled = true
    this.#world.schedule(delayMs, () => {
      this.#isScheduled = false
      this.#arrive()
    })
  }

  #arrive(): void {
    const head = this.#flights[0]
    if (head === undefined || this.isLost || this.#way.isHeld()) return
    const reader = this.#reader()
    if (head.atMs > this.#world.elapsedMs) {
      // A cut has put another part first.
      this.pump()
    } else if (typeof head.part === 'string') {
      // The system answers for a process that is frozen; only its own reading waits.
      if (reader?.isWaiting && head.part !== 'opened') return
      this.#flights.shift()
      this.#deliver(head.part)
      this.pump()
    } else if (!reader?.isWaiting) {
      this.#arriveBytes()
    }
  }

  #arriveBytes(): void {
    const rate = this.#way.bytesPerSecond()
    const bytes = rate === undefined ? this.#takeBytes() : this.#takeSome(rate)
    this.outstanding -= bytes.length
    this.#deliver(bytes)
    if (rate === undefined) this.pump()
    else if (!this.#isScheduled && this.#flights.length > 0) this.#schedule((bytes.length / rate) * 1000)
  }

  /** The next frame, or all bytes that have arrived by now. */
  #takeBytes(): Uint8Array {
    const first = this.#flights.shift()!.part as Uint8Array
    if (this.#isFramed) return first
    const parts = [first]
    for (;;) {
      const next = this.#flights[0]
      if (next === undefined || typeof next.part === 'string' || next.atMs > this.#world.elapsedMs) break
      parts.push(next.part)
      this.#flights.shift()
    }
    return parts.length === 1 ? first : Buffer.concat(parts)
  }

  /** What a slow reader takes at once: a frame, or the bytes of a twentieth of a second. */
  #takeSome(bytesPerSecond: number): Uint8Array {
    const { part, atMs } = this.#flights.shift()!
    const bytes = part as Uint8Array
    const most = Math.max(1, Math.floor(bytesPerSecond / 20))
    if (this.#isFramed || bytes.length <= most) return bytes
    this.#flights.unshift({ part: bytes.subarray(most), atMs })
    return bytes.subarray(0, most)
  }
}
