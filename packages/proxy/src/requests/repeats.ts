/** From this size on, a native call is faster than a loop. */
const manyBytes = 64

/** The offset after the last copy, before `end`, of the bytes from `start` to `next` that directly follow them. */
export function repeatsEnd(bytes: Buffer, start: number, next: number, end: number): number {
  const length = next - start
  let at = next
  while (at + length <= end) {
    for (let index = 0; index < length; index++) if (bytes[start + index] !== bytes[at + index]) return at
    at += length
    // If bytes equal the ones one length before them up to the end, they are copies up to the end.
    if (at === next + length && end - at >= manyBytes && bytes.compare(bytes, next, end - length, at, end) === 0) {
      return end - ((end - at) % length)
    }
  }
  return at
}
