import { createHash } from 'node:crypto'

/**
 * What happened, one line an event: a digest over all lines, and the last of them to read.
 *
 * Two runs are the same when their digests are; where they are not, `lines` of two runs with a large `maxLines` show the
 * first line that differs.
 */
export class EventLog {
  readonly #hash = createHash('sha256')
  readonly #maxLines: number
  /** Lines that the digest does not hold yet: hashing many at once costs a tenth of hashing each. */
  #fresh: string[] = []
  #kept: string[] = []
  #count = 0

  /** @param maxLines How many of the last lines are kept. */
  constructor(maxLines = 2000) {
    this.#maxLines = maxLines
  }

  /** How many lines there were. */
  get count(): number {
    return this.#count
  }

  add(line: string): void {
    this.#count++
    if (this.#fresh.push(line) >= 512) this.#fold()
  }

  /** The digest of all lines so far. */
  get digest(): string {
    this.#fold()
    return this.#hash.copy().digest('hex').slice(0, 32)
  }

  /** The last lines, oldest first. */
  get lines(): readonly string[] {
    this.#fold()
    return this.#kept
  }

  #fold(): void {
    if (this.#fresh.length === 0) return
    this.#hash.update(`${this.#fresh.join('\n')}\n`)
    this.#kept = this.#kept.concat(this.#fresh).slice(-this.#maxLines)
    this.#fresh = []
  }
}
