/**
 * One command for many keys, written straight into bytes: everything around the key is encoded once. Running a million
 * `OBJECT FREQ key` through a general encoder would cost more than the server needs to answer them.
 */
export class Probe {
  readonly #before: Buffer
  readonly #after: Buffer

  /** `before` and `after` are the words around the key. */
  constructor(before: readonly string[], after: readonly string[] = []) {
    const words = before.length + 1 + after.length
    this.#before = Buffer.from(`*${words}\r\n${before.map(bulk).join('')}$`)
    this.#after = Buffer.from(`\r\n${after.map(bulk).join('')}`)
  }

  /** The commands for the keys from `from` to `to`, concatenated. */
  encode(keys: readonly Uint8Array[], from: number, to: number): Buffer {
    const before = this.#before
    const after = this.#after
    let size = (to - from) * (before.length + after.length + 2)
    for (let index = from; index < to; index++) size += keys[index]!.length + digits(keys[index]!.length)
    const bytes = Buffer.allocUnsafe(size)
    let at = 0
    for (let index = from; index < to; index++) {
      const key = keys[index]!
      bytes.set(before, at)
      at += before.length
      const end = at + digits(key.length)
      for (let rest = key.length, place = end - 1; place >= at; place--) {
        bytes[place] = 48 + (rest % 10)
        rest = (rest / 10) | 0
      }
      bytes[end] = 13
      bytes[end + 1] = 10
      at = end + 2
      bytes.set(key, at)
      at += key.length
      bytes.set(after, at)
      at += after.length
    }
    return bytes
  }
}

function bulk(word: string): string {
  return `$${Buffer.byteLength(word)}\r\n${word}\r\n`
}

function digits(value: number): number {
  let count = 1
  for (let rest = value; rest >= 10; rest = (rest / 10) | 0) count++
  return count
}
