/**
 * Knows what a reader may see. The writer stamps versions and notes when each was acknowledged; a read that began after
 * the acknowledgement of a newer version than it returned is stale, by the time between the two. Writer and readers run
 * in one process, so that both times are of one clock.
 */
export class VersionOracle {
  readonly #ackedAt: (number | undefined)[] = []
  #version = 0

  /** The newest version that was acknowledged. */
  get acked(): number {
    return this.#ackedAt.length - 1
  }

  /** Writes the next version; a version whose write fails is neither expected nor refused. */
  async write(send: (value: string) => Promise<unknown>): Promise<void> {
    const version = ++this.#version
    try {
      await send(String(version))
    } catch {
      return
    }
    this.#ackedAt[version] = performance.now()
  }

  /** By how many milliseconds a value is stale for a read that began then. */
  staleMs(value: string | null, startedAt: number): number {
    for (let newer = Number(value ?? 0) + 1; newer < this.#ackedAt.length; newer++) {
      const ackedAt = this.#ackedAt[newer]
      if (ackedAt !== undefined) return Math.max(0, startedAt - ackedAt)
    }
    return 0
  }
}

/** One client that reads the versions of a key and records everything that it should not have seen. */
export class VersionReader {
  /** Reads that gave a version. */
  reads = 0
  /** Staleness of every read that was stale, in milliseconds. */
  readonly staleMs: number[] = []
  failures = 0
  /** Times at which an older version came after a newer one. */
  backwards = 0
  #newest = 0
  readonly #oracle: VersionOracle
  readonly #read: () => Promise<string | null>

  constructor(oracle: VersionOracle, read: () => Promise<string | null>) {
    this.#oracle = oracle
    this.#read = read
  }

  async once(): Promise<void> {
    const startedAt = performance.now()
    let value: string | null
    try {
      value = await this.#read()
    } catch {
      this.failures++
      return
    }
    // A key that was lost with its server's data is not an older version.
    if (value === null) return
    this.reads++
    const staleMs = this.#oracle.staleMs(value, startedAt)
    if (staleMs > 0) this.staleMs.push(staleMs)
    const version = Number(value)
    if (version < this.#newest) this.backwards++
    this.#newest = Math.max(this.#newest, version)
  }

  /** Reads until stopped, one read per turn of the event loop, so that others get their turn. */
  async until(isDone: () => boolean, pauseMs = 0): Promise<void> {
    while (!isDone()) {
      await this.once()
      await new Promise((resolve) => (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)))
    }
  }
}

/** The staleness below which a share `q` of all reads is; reads that are not listed had none. */
export function staleQuantile(staleMs: readonly number[], reads: number, q: number): number {
  const sorted = [...staleMs].sort((a, b) => a - b)
  return sorted[Math.ceil(reads * q) - 1 - (reads - staleMs.length)] ?? 0
}

export function largest(values: readonly number[]): number {
  return values.reduce((max, value) => Math.max(max, value), 0)
}
