/**
 * Values by ASCII name in any case, looked up from text or directly from bytes in a buffer.
 *
 * An open-addressing hash table over the names in capitals, at most a quarter full: a proxy looks up a command without
 * making a string of it. Text goes through a `Map` that holds the two usual spellings, all upper case and all lower
 * case.
 */
export class NameTable<Value> {
  readonly #byText = new Map<string, Value>()
  readonly #names: readonly string[]
  readonly #codes: readonly Uint8Array[]
  readonly #values: readonly Value[]
  /** Index into the names plus one, or 0. */
  readonly #slots: Uint16Array
  readonly #mask: number

  /** The names are in capitals and ASCII. */
  constructor(entries: Iterable<readonly [string, Value]>) {
    const all = [...entries]
    this.#names = all.map(([name]) => name)
    this.#codes = this.#names.map((name) => Uint8Array.from(name, (character) => character.charCodeAt(0)))
    this.#values = all.map(([, value]) => value)
    const size = 2 ** Math.ceil(Math.log2(Math.max(4, all.length * 4)))
    this.#slots = new Uint16Array(size)
    this.#mask = size - 1
    for (const [index, [name, value]] of all.entries()) {
      if (this.#byText.has(name)) throw new TypeError(`the command table has ${name} twice`)
      this.#byText.set(name, value)
      this.#byText.set(name.toLowerCase(), value)
      let slot = hashOfText(name) & this.#mask
      while (this.#slots[slot] !== 0) slot = (slot + 1) & this.#mask
      this.#slots[slot] = index + 1
    }
  }

  values(): readonly Value[] {
    return this.#values
  }

  names(): readonly string[] {
    return this.#names
  }

  ofText(name: string): Value | undefined {
    return this.#byText.get(name) ?? this.#byText.get(name.toUpperCase())
  }

  ofBytes(bytes: Uint8Array, start: number, end: number): Value | undefined {
    let hash = 0
    for (let index = start; index < end; index++) hash = (Math.imul(hash, 31) + capital(bytes[index]!)) | 0
    for (let slot = hash & this.#mask; ; slot = (slot + 1) & this.#mask) {
      const entry = this.#slots[slot]!
      if (entry === 0) return undefined
      if (isCodeAt(bytes, start, end, this.#codes[entry - 1]!)) return this.#values[entry - 1]
    }
  }

  /** The value for a name given as an argument: text or bytes. */
  of(name: unknown): Value | undefined {
    if (typeof name === 'string') return this.ofText(name)
    return name instanceof Uint8Array ? this.ofBytes(name, 0, name.length) : undefined
  }
}

function isCodeAt(bytes: Uint8Array, start: number, end: number, code: Uint8Array): boolean {
  if (end - start !== code.length) return false
  for (let index = 0; index < code.length; index++) if (capital(bytes[start + index]!) !== code[index]) return false
  return true
}

function capital(byte: number): number {
  return byte >= 0x61 && byte <= 0x7a ? byte - 0x20 : byte
}

function hashOfText(name: string): number {
  let hash = 0
  for (let index = 0; index < name.length; index++) hash = (Math.imul(hash, 31) + name.charCodeAt(index)) | 0
  return hash
}

/** True when the bytes from `start` to `end` are `word` (ASCII, in capitals) in any case. */
export function isWordAt(bytes: Uint8Array, start: number, end: number, word: string): boolean {
  if (end - start !== word.length) return false
  for (let index = 0; index < word.length; index++) {
    if (capital(bytes[start + index]!) !== word.charCodeAt(index)) return false
  }
  return true
}
