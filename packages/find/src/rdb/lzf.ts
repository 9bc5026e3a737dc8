/**
 * LZF, the compression of strings in a dump, decoded only as far as needed.
 *
 * A control byte below 32 is followed by that many plus one plain bytes. Any other holds a length in its upper three
 * bits (7 means: add the next byte) and, with the byte after it, how far back to copy from; lengths are at least 3.
 * `wanted` bytes of the result never depend on more than `lzfPrefix(wanted)` bytes of the input, since the least
 * favourable way to write bytes is one plain byte behind one control byte.
 */
export function decompressLzf(input: Uint8Array, start: number, end: number, wanted: number): Uint8Array | undefined {
  const output = new Uint8Array(wanted)
  let from = start
  let to = 0
  while (to < wanted) {
    if (from >= end) return undefined
    const control = input[from++]!
    if (control < 32) {
      const count = Math.min(control + 1, wanted - to)
      if (from + count > end) return undefined
      for (let index = 0; index < count; index++) output[to++] = input[from++]!
      if (count <= control) break
      continue
    }
    let length = control >> 5
    if (length === 7) {
      if (from >= end) return undefined
      length += input[from++]!
    }
    if (from >= end) return undefined
    let back = to - ((control & 31) << 8) - input[from++]! - 1
    if (back < 0) return undefined
    const stop = Math.min(to + length + 2, wanted)
    while (to < stop) output[to++] = output[back++]!
  }
  return output
}

/** How many bytes of compressed input are enough for the first `wanted` bytes of output. */
export function lzfPrefix(wanted: number): number {
  return 2 * wanted + 2
}
