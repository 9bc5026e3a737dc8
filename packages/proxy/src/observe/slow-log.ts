/** A request that took long. */
export interface SlowRequest {
  readonly id: number
  readonly atMs: number
  readonly elapsedMs: number
  readonly command: string
  readonly node: string
  readonly client: string
  readonly clientName: string
}

/** The newest slow requests, up to a fixed number. */
export class SlowLog {
  readonly #length: number
  readonly #entries: SlowRequest[] = []
  #nextId = 0

  constructor(length: number) {
    this.#length = length
  }

  /** How many were slow since the start. */
  get total(): number {
    return this.#nextId
  }

  add(request: Omit<SlowRequest, 'id'>): void {
    this.#entries.push({ id: this.#nextId++, ...request })
    if (this.#entries.length > this.#length) this.#entries.shift()
  }

  /** The newest first. */
  newest(count = 10): SlowRequest[] {
    return this.#entries.slice(-count || this.#entries.length).reverse()
  }

  reset(): void {
    this.#entries.length = 0
  }
}
