import { wholeNumberOf } from '../resp/resp-number.ts'
import { isWordAt, type NameTable } from './name-table.ts'

/**
 * All that the command table needs to know about a command's arguments, so that a hook with an array and a proxy with
 * offsets into a buffer share one implementation. Index 0 is the command's name.
 */
export interface CommandArgs {
  /** Number of arguments, including the name. */
  readonly length: number
  /** Whether an argument equals `word` (given in capitals), ignoring case. */
  isWord(index: number, word: string): boolean
  /** Whether an argument is empty. */
  isEmpty(index: number): boolean
  /** The integer that an argument spells, or NaN. */
  numberAt(index: number): number
  /** Looks an argument up by name in a table. */
  find<Value>(index: number, table: NameTable<Value>): Value | undefined
}

/** Arguments as a client library has them: an array, with the command's name either first or separate. */
export class ListArgs implements CommandArgs {
  #name: string | undefined
  #list: readonly unknown[]

  /** Without `name`, the list's first item is the name. */
  constructor(list: readonly unknown[] = [], name?: string) {
    this.#list = list
    this.#name = name
  }

  /** Reuses this object for another command, where every allocation counts. */
  set(list: readonly unknown[], name?: string): this {
    this.#list = list
    this.#name = name
    return this
  }

  get length(): number {
    return this.#name === undefined ? this.#list.length : this.#list.length + 1
  }

  /** The argument at an index, as reported by `forEachKey`. */
  at(index: number): unknown {
    if (this.#name === undefined) return this.#list[index]
    return index === 0 ? this.#name : this.#list[index - 1]
  }

  isWord(index: number, word: string): boolean {
    const arg = this.at(index)
    if (typeof arg === 'string') return arg.length === word.length && (arg === word || arg.toUpperCase() === word)
    return arg instanceof Uint8Array && isWordAt(arg, 0, arg.length, word)
  }

  isEmpty(index: number): boolean {
    const arg = this.at(index)
    return arg === '' || (arg instanceof Uint8Array && arg.length === 0)
  }

  numberAt(index: number): number {
    const arg = this.at(index)
    if (typeof arg === 'number') return arg
    if (arg instanceof Uint8Array) return wholeNumberOf(arg, 0, arg.length)
    return typeof arg === 'string' && /^[+-]?\d+$/.test(arg) ? Number(arg) : Number.NaN
  }

  find<Value>(index: number, table: NameTable<Value>): Value | undefined {
    return table.of(this.at(index))
  }
}

/** Offsets of a request's arguments in a buffer; a `RequestParser` is one. */
export interface ArgumentOffsets {
  readonly length: number
  readonly bytes: Uint8Array
  startOf(index: number): number
  endOf(index: number): number
}

/** Arguments as a proxy has them: offsets into a buffer. */
export class BufferArgs implements CommandArgs {
  readonly #offsets: ArgumentOffsets

  constructor(offsets: ArgumentOffsets) {
    this.#offsets = offsets
  }

  get length(): number {
    return this.#offsets.length
  }

  isWord(index: number, word: string): boolean {
    const offsets = this.#offsets
    return isWordAt(offsets.bytes, offsets.startOf(index), offsets.endOf(index), word)
  }

  isEmpty(index: number): boolean {
    return this.#offsets.startOf(index) === this.#offsets.endOf(index)
  }

  numberAt(index: number): number {
    return wholeNumberOf(this.#offsets.bytes, this.#offsets.startOf(index), this.#offsets.endOf(index))
  }

  find<Value>(index: number, table: NameTable<Value>): Value | undefined {
    return table.ofBytes(this.#offsets.bytes, this.#offsets.startOf(index), this.#offsets.endOf(index))
  }
}
