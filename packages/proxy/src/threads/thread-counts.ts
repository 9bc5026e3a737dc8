/**
 * What a proxy's threads have in common: clients, and the bytes that those have unread. Each thread writes its own
 * numbers to shared memory and reads the sum.
 */
export class ThreadCounts {
  readonly #numbers: Int32Array
  readonly #thread: number

  /** `memory` is that of `memoryFor`, the same for all threads. */
  constructor(thread = 0, memory: SharedArrayBuffer = ThreadCounts.memoryFor(1)) {
    this.#numbers = new Int32Array(memory)
    this.#thread = thread
  }

  static memoryFor(threads: number): SharedArrayBuffer {
    return new SharedArrayBuffer((1 + threads * 2) * Int32Array.BYTES_PER_ELEMENT)
  }

  /** Clients of all threads. */
  get clients(): number {
    return Atomics.load(this.#numbers, total)
  }

  /** Counts a client of this thread; false, without counting it, if there are `most` already. */
  admit(most: number): boolean {
    if (Atomics.add(this.#numbers, total, 1) >= most) {
      Atomics.sub(this.#numbers, total, 1)
      return false
    }
    Atomics.add(this.#numbers, this.#clientsPlace, 1)
    return true
  }

  /** A client of this thread is gone. */
  dismiss(): void {
    Atomics.sub(this.#numbers, total, 1)
    Atomics.sub(this.#numbers, this.#clientsPlace, 1)
  }

  /** Records what this thread's clients have unread; returns the sum over all threads. */
  weigh(unreadBytes: number): number {
    const numbers = this.#numbers
    Atomics.store(numbers, this.#clientsPlace + 1, Math.ceil(unreadBytes / unit))
    let sum = 0
    for (let place = total + 2; place < numbers.length; place += 2) sum += Atomics.load(numbers, place)
    return sum * unit
  }

  /** This thread has ended, and its clients with it. */
  forget(): void {
    Atomics.sub(this.#numbers, total, Atomics.exchange(this.#numbers, this.#clientsPlace, 0))
    Atomics.store(this.#numbers, this.#clientsPlace + 1, 0)
  }

  get #clientsPlace(): number {
    return total + 1 + this.#thread * 2
  }
}

/** The position of the total number of clients; after it, for each thread, its clients and its unread kilobytes. */
const total = 0
const unit = 1024
