/** The offset behind the last copy, before `end`, of the bytes from `start` to `next` that follows them at once. */
export function repeatsEnd(bytes: Uint8Array, start: number, next: number, end: number): number {
  const length = next - start
  let at = next
  while (at + length <= end) {
    for (let index = 0; index < length; index++) if (bytes[start + index] !== bytes[at + index]) return at
    at += length
  }
  return at
}
