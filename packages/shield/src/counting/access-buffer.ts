import type { AccessCounter } from '@firebreak/core/heat'

const capacity = 128
/** Flushed after no fewer than this many, however near a crossing is. */
const smallest = 8

/** Knows which counts are worth an immediate report. */
export interface BurstWatch {
  /** No key qualifies before it has this many accesses in an interval. */
  readonly burstCount: number
  /** A key about to cross does so within this many accesses; infinite if there is none. */
  readonly leftCount: number
  /** True if a key, by its name or the hash of its bytes, qualifies with the accesses counted since `before`. */
  isBurst(key: string | number, before: number, count: number): boolean
}

/**
 * Accesses on their way to the counter. A look-up of each key at once would find the counter's table out of the
 * processor's cache every time, since a whole Redis command runs between two accesses; noting the key is a write to the
 * next place of an array, and a hundred look-ups in a row find the table warm (`bench/client.ts`, `cold-vs-bare`).
 */
export class AccessBuffer {
  readonly #counter: AccessCounter
  readonly #names: string[] = Array.from({ length: capacity }, () => '')
  readonly #writes = new Uint8Array(capacity)
  readonly #bytes = new Float64Array(capacity)
  #length = 0
  #counted = 0
  /** If a key is about to cross, it must not wait for a hundred others. */
  #limit = capacity
  readonly #bursts: BurstWatch
  readonly #onBurst: () => void

  constructor(counter: AccessCounter, bursts: BurstWatch, onBurst: () => void) {
    this.#counter = counter
    this.#bursts = bursts
    this.#onBurst = onBurst
  }

  /** Accesses since the last `restart`. */
  get count(): number {
    return this.#counted + this.#length
  }

  add(name: string, isWrite: boolean, bytes: number): void {
    const at = this.#length
    this.#names[at] = name
    this.#writes[at] = isWrite ? 1 : 0
    this.#bytes[at] = bytes
    this.#length = at + 1
    if (at + 1 >= this.#limit) this.flush()
  }

  /** Passes everything to the counter. */
  flush(): void {
    const length = this.#length
    this.#length = 0
    this.#counted += length
    let isBursting = false
    const { burstCount } = this.#bursts
    for (let index = 0; index < length; index++) {
      const count = this.#counter.add(this.#names[index]!, this.#writes[index] === 1, this.#bytes[index]!)
      if (count >= burstCount && this.#bursts.isBurst(this.#names[index]!, count - 1, count)) isBursting = true
    }
    this.#setLimit()
    if (isBursting) this.#onBurst()
  }

  /** Starts a new interval. */
  restart(): void {
    this.#counted = 0
    this.#setLimit()
  }

  #setLimit(): void {
    this.#limit = Math.max(smallest, Math.min(capacity, this.#bursts.leftCount - this.#counted))
  }
}
