import { isReservedName } from './own-names.ts'
import type { IsOurs } from './visible-key.ts'

/** Removed copies that are remembered; the oldest are forgotten first. */
const maxRemoved = 16_384

/**
 * The copies of one key space that the server has confirmed to be ours. A name alone proves nothing: `product_100_1`
 * may be a real key of the application, so we only know after the first attempt to write it.
 */
export class OwnCopies {
  /** By their bytes as Latin-1; until when each may exist. */
  readonly #until = new Map<string, number>()
  /** Writes in flight to copies whose owner is not known yet. */
  readonly #asked = new Map<string, number>()
  /** Copies that the server has removed, oldest first, each with its number among the removals. */
  readonly #removed = new Map<string, number>()
  #removals = 0

  /**
   * A copy is about to be written and may exist before the answer arrives. Until the returned function is called it
   * counts as ours; otherwise a KEYS answered in between would show it.
   */
  ask(copy: Uint8Array): () => void {
    const id = idOf(copy)
    this.#asked.set(id, (this.#asked.get(id) ?? 0) + 1)
    return () => {
      const left = this.#asked.get(id)! - 1
      if (left === 0) this.#asked.delete(id)
      else this.#asked.set(id, left)
    }
  }

  add(copy: Uint8Array): void {
    this.#until.set(idOf(copy), Number.POSITIVE_INFINITY)
  }

  delete(copy: Uint8Array): void {
    this.#until.delete(idOf(copy))
  }

  /**
   * The server has removed this copy. The reply to a KEYS that it carried out before may still be on its way, over
   * another connection: see `listing`.
   */
  removed(copy: Uint8Array): void {
    const id = idOf(copy)
    if (!this.#until.delete(id)) return
    this.#removed.delete(id)
    this.#removed.set(id, ++this.#removals)
    if (this.#removed.size > maxRemoved) this.#removed.delete(this.#removed.keys().next().value!)
  }

  /**
   * For the reply to a KEYS, SCAN or RANDOMKEY that is about to be sent: true for what `has` knows then, and for copies
   * that were removed in the meantime.
   */
  listing(): IsOurs {
    const sentAfter = this.#removals
    return (name) => this.has(name) || (this.#removals > sentAfter && this.#numberOf(name) > sentAfter)
  }

  #numberOf(name: Uint8Array): number {
    return this.#removed.get(idOf(name)) ?? 0
  }

  /** This process no longer writes this copy; whoever did may have died, so it expires by itself. */
  leave(copy: Uint8Array, until: number): void {
    const id = idOf(copy)
    if (this.#until.has(id)) this.#until.set(id, until)
  }

  /** Forgets the copies that have expired by now. */
  sweep(now: number): void {
    for (const [id, until] of this.#until) if (now >= until) this.#until.delete(id)
  }

  /** True for a copy that the server has confirmed to be ours. */
  knows(copy: Uint8Array): boolean {
    return this.#until.has(idOf(copy))
  }

  /** True for our copies and for our auxiliary keys. */
  has(name: Uint8Array): boolean {
    if (isReservedName(name)) return true
    if (this.#until.size === 0 && this.#asked.size === 0) return false
    const id = idOf(name)
    return this.#until.has(id) || this.#asked.has(id)
  }
}

function idOf(name: Uint8Array): string {
  return Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1')
}
