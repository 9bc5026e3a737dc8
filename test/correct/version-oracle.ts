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

  /** Writes the next version; one that fails is never expected, and never refused either. */
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

/** One client that reads the versions of a key and notes everything that it should not have seen. */
export class VersionReader {
  /** Staleness of every read, in milliseconds. */
  readonly staleMs: number[] = []
  readonly latencyMs: number[] = []
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
    this.latencyMs.push(performance.now() - startedAt)
    // A key that is gone with its server's data is no older version.
    if (value === null) return
    this.staleMs.push(this.#oracle.staleMs(value, startedAt))
    const version = Number(value)
    if (version < this.#newest) this.backwards++
    this.#newest = Math.max(this.#newest, version)
  }

  /** Reads until told otherwise, a read a turn of the event loop, so that others have their turn. */
  async until(isDone: () => boolean, pauseMs = 0): Promise<void> {
    while (!isDone()) {
      await this.once()
      await new Promise((resolve) => (pauseMs > 0 ? setTimeout(resolve, pauseMs) : setImmediate(resolve)))
    }
  }
}

/** The value below which the share `q` lies. */
export function quantile(values: readonly number[], q: number): number {
  const sorted = [...values].sort((a, b) => a - b)
  return sorted[Math.max(0, Math.ceil(sorted.length * q) - 1)] ?? 0
}

export function largest(values: readonly number[]): number {
  return values.reduce((max, value) => Math.max(max, value), 0)
}
