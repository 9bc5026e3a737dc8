import type { Clock, Runtime, Timers } from '@firebreak/core'

/** What gathers bytes until a turn of the loop ends. */
export interface Gathering {
  /** The event ends: memory that it lent is about to be another's. */
  endEvent(): void
  flush(): void
}

/** What something is to be done with. The array is used again as it is: to set its length is a slow thing. */
class Queue {
  readonly #items: (Gathering | undefined)[] = []
  #taken = 0
  #end = 0

  add(item: Gathering): void {
    this.#items[this.#end++] = item
  }

  /** Takes out the one that came first. */
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
 * The turn of the event loop that a proxy's thread is in: its time, read once per event instead of once per command, and
 * what is to leave before it ends, to Redis first.
 */
export class Turn {
  readonly #clock: Clock
  readonly #timers: Timers
  /** The time when the last event began. */
  nowMs: number
  /** True while bytes that came stay as they are. */
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

  /** Bytes came: until `endEvent` their memory stays as it is. */
  beginEvent(): void {
    this.isInEvent = true
  }

  /** Ends the event in which bytes came: what it put leaves now if it is the only one of its turn, else with the turn. */
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

  /** It has something that is to leave with this turn. */
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
