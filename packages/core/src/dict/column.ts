import { chunkShift, type DictFollower } from './entry-pool.ts'

const chunkEntries = 1 << chunkShift

/** The typed arrays that a column can be made of. */
export type ColumnArray = Uint8Array | Uint16Array | Uint32Array | Int32Array | Float64Array

/**
 * One number per entry of a dict, beside it, at the same index: `dict.attach(new Column(Uint16Array))`.
 *
 * It lies in chunks like the dict's own entries, so that it grows without copying; a chunk is made when something is
 * first written to it and given back with the dict's. An entry nobody wrote, and one whose key was deleted, is 0.
 */
export class Column<Chunk extends ColumnArray> implements DictFollower {
  readonly #chunks: (Chunk | undefined)[] = []
  readonly #make: new (
    length: number,
  ) => Chunk

  constructor(make: new (length: number) => Chunk) {
    this.#make = make
  }

  get(index: number): number {
    return this.#chunks[index >>> chunkShift]?.[index & (chunkEntries - 1)] ?? 0
  }

  set(index: number, value: number): void {
    const chunk = (this.#chunks[index >>> chunkShift] ??= new this.#make(chunkEntries))
    chunk[index & (chunkEntries - 1)] = value
  }

  forget(index: number): void {
    const chunk = this.#chunks[index >>> chunkShift]
    if (chunk !== undefined) chunk[index & (chunkEntries - 1)] = 0
  }

  releaseChunk(chunk: number): void {
    this.#chunks[chunk] = undefined
  }
}
