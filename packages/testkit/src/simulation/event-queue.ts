/** Something that will happen at a point of virtual time. */
export interface QueuedEvent {
  atMs: number
  order: number
  isCancelled: boolean
  readonly run: () => void
}

/** Events by time, then by the order in which they were added: a binary heap. */
export class EventQueue {
  readonly #heap: QueuedEvent[] = []
  #order = 0

  /** How many events wait, cancelled ones that have not been met yet included. */
  get size(): number {
    return this.#heap.length
  }

  add(atMs: number, run: () => void): QueuedEvent {
    const event: QueuedEvent = { atMs, order: this.#order++, isCancelled: false, run }
    this.#push(event)
    return event
  }

  /** The time of the next event, or undefined where there is none. */
  nextAtMs(): number | undefined {
    this.#dropCancelled()
    return this.#heap[0]?.atMs
  }

  /** Takes the next event out. */
  take(): QueuedEvent | undefined {
    this.#dropCancelled()
    return this.#pop()
  }

  #dropCancelled(): void {
    while (this.#heap.length > 0 && this.#heap[0]!.isCancelled) this.#pop()
  }

  #push(event: QueuedEvent): void {
    const heap = this.#heap
    let at = heap.length
    while (at > 0) {
      const parent = (at - 1) >> 1
      if (isBefore(heap[parent]!, event)) break
      heap[at] = heap[parent]!
      at = parent
    }
    heap[at] = event
  }

  #pop(): QueuedEvent | undefined {
    const heap = this.#heap
    const first = heap[0]
    const last = heap.pop()
    if (first === undefined || last === undefined || first === last) return first
    let at = 0
    for (;;) {
      let child = at * 2 + 1
      if (child >= heap.length) break
      if (child + 1 < heap.length && isBefore(heap[child + 1]!, heap[child]!)) child++
      if (isBefore(last, heap[child]!)) break
      heap[at] = heap[child]!
      at = child
    }
    heap[at] = last
    return first
  }
}

function isBefore(a: QueuedEvent, b: QueuedEvent): boolean {
  return a.atMs < b.atMs || (a.atMs === b.atMs && a.order < b.order)
}
