import type { Clock, Runtime, Timers } from '@firebreak/core'

/** Collects bytes until a turn of the loop ends. */
export interface Gathering {
  /** The event ends: memory that it lent is about to be reused. */
  endEvent(): void
  flush(): void
}

/** A queue of items to process. The array is reused as it is: setting its length is slow. */
class Queue {
  readonly #items: (Gathering | undefined)[] = []
  #taken = 0
  #end = 0

  add(item: Gathering): void {
    this.#items[this.#end++] = item
  }

  /** Removes the first item. */
  take(): Gathering | undefined {
    if (this.#taken === this.#end) {
      this.#taken = 0
      this.#end = 0
      return undefined
    }
    const item = this.#items[this.#taken]
    this.#items[this.#taken++] = undefined
    return item
  }
}

/**
 * The current turn of the event loop in a proxy's thread: its time, read once per event instead of once per command,
 * and the output to be sent before it ends, to Redis first.
 */
export class Turn {
  readonly #clock: Clock
  readonly #timers: Timers
  /** The time when the last event began. */
  nowMs: number
  /** True while the received bytes stay unchanged. */
  isInEvent = false
  #events = 0
  #eventsBefore = 0
  #isPlanned = false
  readonly #toClients = new Queue()
  readonly #toRedis = new Queue()
  readonly #lent = new Queue()

  constructor({ clock, timers }: Pick<Runtime, 'clock' | 'timers'>) {
    this.#clock = clock
    this.#timers = timers
    this.nowMs = clock.now()
  }

  /** Reads the clock. */
  read(): number {
    return (this.nowMs = this.#clock.now())
  }

  /** Bytes arrived: their memory stays unchanged until `endEvent`. */
  beginEvent(): void {
    this.isInEvent = true
  }

  /**
   * Ends the event in which bytes arrived: its output is sent now if it is the only one of its turn, otherwise with the
   * turn.
   */
  endEvent(): void {
    this.isInEvent = false
    const lent = this.#lent
    for (let item = lent.take(); item !== undefined; item = lent.take()) item.endEvent()
    if (++this.#events === 1 && this.#eventsBefore <= 1) this.#flushAll()
  }

  /** Its last bytes are lent until the event ends. */
  lend(item: Gathering): void {
    this.#lent.add(item)
  }

  /** It has output to be sent with this turn. */
  mark(item: Gathering, isToClient: boolean): void {
    if (isToClient) this.#toClients.add(item)
    else this.#toRedis.add(item)
    if (this.#isPlanned) return
    this.#isPlanned = true
    this.#timers.setImmediate(this.#end)
  }

  // After an early flush it finds nothing to write, and ends the turn's count.
  readonly #end = (): void => {
    this.#isPlanned = false
    this.#eventsBefore = this.#events
    this.#events = 0
    this.#flushAll()
  }

  #flushAll(): void {
    const toRedis = this.#toRedis
    const toClients = this.#toClients
    for (let item = toRedis.take(); item !== undefined; item = toRedis.take()) item.flush()
    for (let item = toClients.take(); item !== undefined; item = toClients.take()) item.flush()
  }
}
