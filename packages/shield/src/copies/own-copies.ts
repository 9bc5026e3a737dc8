import { isReservedName } from './own-names.ts'

/**
 * The copies of one key space that the server has said to be ours. A name alone says nothing: `product_100_1` may be
 * somebody's real key, so a copy is known from the answer to the first attempt to write it.
 */
export class OwnCopies {
  /** By their bytes as Latin-1; until when one may still be there. */
  readonly #until = new Map<string, number>()

  add(copy: Uint8Array): void {
    this.#until.set(idOf(copy), Number.POSITIVE_INFINITY)
  }

  delete(copy: Uint8Array): void {
    this.#until.delete(idOf(copy))
  }

  /** Nobody here writes this copy any more; whoever did may have died, so that it ends by itself. */
  leave(copy: Uint8Array, until: number): void {
    const id = idOf(copy)
    if (this.#until.has(id)) this.#until.set(id, until)
  }

  /** Forgets the copies that have ended by now. */
  sweep(now: number): void {
    for (const [id, until] of this.#until) if (now >= until) this.#until.delete(id)
  }

  /** True for a copy of ours, and for what we keep beside keys and copies. */
  has(name: Uint8Array): boolean {
    return isReservedName(name) || (this.#until.size > 0 && this.#until.has(idOf(name)))
  }
}

function idOf(name: Uint8Array): string {
  return Buffer.from(name.buffer, name.byteOffset, name.byteLength).toString('latin1')
}
