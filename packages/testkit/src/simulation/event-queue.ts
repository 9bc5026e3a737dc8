/** Something that will happen at a point of virtual time. */
export interface QueuedEvent {
  atMs: number
  order: number
  /** Set where it has happened or will not. */
  isOver: boolean
  readonly run: () => void
}

/**
 * Events by time, then by the order in which they were added: a binary heap. A cancelled event stays until it is met, or
 * until more than half of the heap is cancelled: most deadlines are, and long before their time.
 */
export class EventQueue {
  #heap: QueuedEvent[] = []
  #order = 0
  #cancelled = 0

  /** How many events wait. */
  get size(): number {
    return this.#heap.length - this.#cancelled
  }

  /** How many events are held, cancelled ones included. */
  get held(): number {
    return this.#heap.length
  }

  add(atMs: number, run: () => void): QueuedEvent {
    const event: QueuedEvent = { atMs, order: this.#order++, isOver: false, run }
    this.#push(event)
    return event
  }

  cancel(event: QueuedEvent): void {
    if (event.isOver) return
    event.isOver = true
    if (++this.#cancelled < 64 || this.#cancelled * 2 < this.#heap.length) return
    const left = this.#heap.filter(({ isOver }) => !isOver)
    this.#heap = []
    this.#cancelled = 0
    for (const each of left) this.#push(each)
  }

  /** The time of the next event, or undefined if there is none. */
  nextAtMs(): number | undefined {
    this.#dropCancelled()
    return this.#heap[0]?.atMs
  }

  /** Takes the next event out. */
  take(): QueuedEvent | undefined {
    this.#dropCancelled()
    const event = this.#pop()
    if (event !== undefined) event.isOver = true
    return event
  }

  #dropCancelled(): void {
    while (this.#heap.length > 0 && this.#heap[0]!.isOver) {
      this.#pop()
      this.#cancelled--
    }
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
