/**
 * What a hot key has saved since its counters were last taken. A base class of the key and not a member of it: a hot
 * key's hit is counted here and should not go through another object for that.
 */
export abstract class CountedKey {
  /** Reads that were answered from memory and not yet counted as accesses. */
  uncounted = 0
  localHits = 0
  redisReads = 0
  bytesSaved = 0
  /** Increments merged into another command. */
  combined = 0
  loadCount = 0
  loadMs = 0
  /** Largest staleness measured by the canary since the last status; undefined if it did not check. */
  staleMs: number | undefined
  /** True if something was counted since the counters were last taken. */
  isTouched = false
  #copyReads = 0

  /** Adds the key to those with counts. */
  protected abstract noteTouched(): void

  /** Reads answered from a copy. */
  get copyReads(): number {
    return this.#copyReads
  }

  set copyReads(count: number) {
    this.#copyReads = count
    this.touch()
  }

  /** A read could not be answered here and goes to Redis. */
  bypassed(): void {
    this.redisReads++
    this.touch()
  }

  /** This many increments were merged into others' commands. */
  countCombined(count: number): void {
    this.combined += count
    this.touch()
  }

  /** The canary has checked: `staleMs` is what it measured. */
  noteStaleness(staleMs: number): void {
    this.staleMs = Math.max(this.staleMs ?? 0, staleMs)
    this.touch()
  }

  /** Reads were answered without Redis, each with as many bytes. */
  countHits(count: number, bytes: number): void {
    this.localHits += count
    this.bytesSaved += bytes * count
    this.touch()
  }

  /** Something was counted; keys without counts can then be skipped. */
  touch(): void {
    if (this.isTouched) return
    this.isTouched = true
    this.noteTouched()
  }

  /** Resets the effect's counters. */
  resetEffect(): void {
    this.localHits = 0
    this.redisReads = 0
    this.#copyReads = 0
    this.bytesSaved = 0
    this.combined = 0
    this.loadCount = 0
    this.loadMs = 0
    this.staleMs = undefined
  }
}
