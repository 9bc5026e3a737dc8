/** From so many bytes on the way into native code is shorter than a loop. */
const manyBytes = 64

/** The offset behind the last copy, before `end`, of the bytes from `start` to `next` that follows them at once. */
export function repeatsEnd(bytes: Buffer, start: number, next: number, end: number): number {
  const length = next - start
  let at = next
  while (at + length <= end) {
    for (let index = 0; index < length; index++) if (bytes[start + index] !== bytes[at + index]) return at
    at += length
    // Bytes that are the same as those one length before them, to the end, are copies to the end.
    if (at === next + length && end - at >= manyBytes && bytes.compare(bytes, next, end - length, at, end) === 0) {
      return end - ((end - at) % length)
    }
  }
  return at
}
