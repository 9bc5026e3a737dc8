export const chunkShift = 14
export const chunkMask: number = (1 << chunkShift) - 1
const chunkEntries = 1 << chunkShift
const usedWord = 2
const noWords = new Int32Array(0)
const noFloats = new Float32Array(0)

/**
 * The entries of a dict: runs of `stride` 32-bit words, in chunks of 16,384.
 *
 * An index is dense and stable. A freed one goes on its chunk's free list, linked through the entry's first word, and
 * is reused lowest chunk first, so that high chunks empty out and are freed. The third word of an entry in use (the
 * key's ref) is never 0; that of a free one is.
 */
export class EntryPool {
  readonly stride: number
  readonly words: Int32Array[] = []
  /** The same words as floats. */
  readonly floats: Float32Array[] = []
  /** Per chunk: head of its free list (index + 1), entries ever used, and entries in use. */
  readonly #freeHeads: number[] = []
  readonly #used: number[] = []
  readonly #live: number[] = []
  /** No chunk below this one has room. */
  #roomFrom = 0
  #chunkCount = 0
  #size = 0

  constructor(stride: number) {
    this.stride = stride
  }

  /** Number of entries in use. */
  get size(): number {
    return this.#size
  }

  get bytes(): number {
    return this.#chunkCount * this.chunkBytes
  }

  get chunkBytes(): number {
    return chunkEntries * this.stride * 4
  }

  /** True if the next `take` allocates a chunk. */
  get needsChunk(): boolean {
    let chunk = this.#roomFrom
    while (chunk < this.words.length && this.#live[chunk] === chunkEntries) chunk++
    this.#roomFrom = chunk
    return chunk === this.words.length || this.words[chunk] === noWords
  }

  /** Returns a free index; its words are 0 except the first. */
  take(): number {
    if (this.needsChunk) this.#open(this.#roomFrom)
    const chunk = this.#roomFrom
    this.#live[chunk]!++
    this.#size++
    const head = this.#freeHeads[chunk]!
    if (head === 0) return (chunk << chunkShift) + this.#used[chunk]!++
    this.#freeHeads[chunk] = this.words[chunk]![((head - 1) & chunkMask) * this.stride]!
    return head - 1
  }

  free(index: number): void {
    const chunk = index >>> chunkShift
    const words = this.words[chunk]!
    const at = (index & chunkMask) * this.stride
    words.fill(0, at, at + this.stride)
    words[at] = this.#freeHeads[chunk]!
    this.#freeHeads[chunk] = index + 1
    this.#live[chunk]!--
    this.#size--
    if (chunk < this.#roomFrom) this.#roomFrom = chunk
    if (this.#live[chunk] === 0) this.#release(chunk)
  }

  /** The first index in use at or after `from`, or -1. */
  next(from: number): number {
    let index = from
    while (index >>> chunkShift < this.words.length) {
      const chunk = index >>> chunkShift
      const used = (chunk << chunkShift) + this.#used[chunk]!
      if (this.#live[chunk]! > 0) {
        const words = this.words[chunk]!
        for (; index < used; index++) if (words[(index & chunkMask) * this.stride + usedWord] !== 0) return index
      }
      index = (chunk + 1) << chunkShift
    }
    return -1
  }

  /** An index in use near the place given by a random whole number; -1 if there is none. */
  pick(random: number): number {
    if (this.#size === 0) return -1
    const chunk = random % this.words.length
    const used = this.#used[chunk]!
    const found = this.next((chunk << chunkShift) + (used === 0 ? 0 : (random >>> 8) % used))
    return found >= 0 ? found : this.next(0)
  }

  clear(): void {
    for (let chunk = 0; chunk < this.words.length; chunk++) {
      if (this.words[chunk] === noWords) continue
      if (chunk > 0) {
        this.#release(chunk)
        continue
      }
      // The first chunk is kept: a pool that is cleared repeatedly allocates nothing.
      this.words[0]!.fill(0, 0, this.#used[0]! * this.stride)
      this.#freeHeads[0] = this.#used[0] = this.#live[0] = 0
    }
    this.#size = this.#roomFrom = 0
  }

  #open(chunk: number): void {
    const words = new Int32Array(chunkEntries * this.stride)
    this.words[chunk] = words
    this.floats[chunk] = new Float32Array(words.buffer)
    this.#freeHeads[chunk] = this.#used[chunk] = this.#live[chunk] = 0
    this.#chunkCount++
  }

  #release(chunk: number): void {
    this.words[chunk] = noWords
    this.floats[chunk] = noFloats
    this.#freeHeads[chunk] = this.#used[chunk] = this.#live[chunk] = 0
    this.#chunkCount--
  }
}
