/** Called for each command; `args` are views or copies, valid during the call, with long ones truncated. */
export type CommandVisitor = (args: readonly Uint8Array[], bytes: number) => void

/** Statistics of a stream of commands. */
export interface CommandCounts {
  commands: number
  /** Bytes between a gap and the next command. */
  skippedBytes: number
  /** How often reading had to resynchronise at the next command. */
  resyncs: number
}

/** Bounds for reading commands. */
export interface CommandStreamOptions {
  /** Longer arguments are skipped and passed as their first bytes. @default 4096 */
  readonly maxArgumentBytes?: number
  /** Arguments kept per command; the rest are skipped. @default 8192 */
  readonly maxArguments?: number
}

const star = 0x2a
const dollar = 0x24
const carriageReturn = 0x0d
const longestLine = 65536
const mostArguments = 1 << 20
const mostBytes = 512 * 1024 * 1024

/**
 * Reads a client's commands from bytes that arrive in arbitrary pieces and may have holes.
 *
 * It is not core's `RequestParser` for two reasons: a finder needs keys and not values, so a megabyte of value is
 * skipped rather than collected, and after a hole it has to find the next command by itself. A command begins at a line
 * `*N` followed by a line `$N`; a value may contain the same by chance, and then the first thing that does not match
 * restarts the search. Requests are the same in RESP2 and RESP3.
 */
export class CommandStream {
  readonly counts: CommandCounts
  readonly #visit: CommandVisitor
  readonly #maxArgumentBytes: number
  readonly #maxArguments: number
  #rest: Buffer = Buffer.alloc(0)
  #isSearching = false
  #args: Uint8Array[] = []
  /** Arguments still to come of the current command. */
  #missing = 0
  /** Bytes to skip before the next argument: the rest of a long one and its line end. */
  #skip = 0
  #commandBytes = 0

  constructor(visit: CommandVisitor, counts: CommandCounts, options: CommandStreamOptions = {}) {
    this.#visit = visit
    this.counts = counts
    this.#maxArgumentBytes = options.maxArgumentBytes ?? 4096
    this.#maxArguments = options.maxArguments ?? 8192
  }

  /** Bytes are missing here. */
  gap(): void {
    this.#rest = Buffer.alloc(0)
    this.#search()
  }

  data(bytes: Uint8Array): void {
    let data: Buffer = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length)
    if (this.#skip >= data.length) {
      this.#skip -= data.length
      return
    }
    if (this.#skip > 0) {
      data = data.subarray(this.#skip)
      this.#skip = 0
    }
    if (this.#rest.length > 0) data = Buffer.concat([this.#rest, data])
    const at = this.#read(data)
    this.#rest = at >= data.length ? Buffer.alloc(0) : Buffer.from(data.subarray(at))
  }

  /** Reads all complete items; returns the offset of the first incomplete one. */
  #read(data: Buffer): number {
    let at = 0
    for (;;) {
      if (this.#missing === 0 && this.#args.length > 0) this.#finish()
      if (at >= data.length) return at
      if (this.#isSearching) {
        const found = this.#find(data, at)
        this.counts.skippedBytes += found - at
        at = found
        if (this.#isSearching) return at
      }
      const next = this.#missing > 0 ? this.#argument(data, at) : this.#start(data, at)
      if (next === 0) return at
      this.#commandBytes += next - at
      if (next > data.length) this.#skip = next - data.length
      at = next
    }
  }

  /** The start of a command; returns the offset after it, or 0 if it is incomplete. */
  #start(data: Buffer, at: number): number {
    const end = data.indexOf(carriageReturn, at)
    if (end < 0 || end + 1 >= data.length) return this.#waitForLine(data, at)
    if (data[at] !== star) return this.#inline(data, at, end)
    const count = number(data, at + 1, end)
    if (count < 0 || count > mostArguments) return this.#lose(at)
    this.#commandBytes = 0
    this.#args = []
    this.#missing = count
    return end + 2
  }

  #argument(data: Buffer, at: number): number {
    const end = data.indexOf(carriageReturn, at)
    if (end < 0 || end + 1 >= data.length) return this.#waitForLine(data, at)
    const length = data[at] === dollar ? number(data, at + 1, end) : -1
    if (length < 0 || length > mostBytes) return this.#lose(at)
    const start = end + 2
    const kept = Math.min(length, this.#maxArgumentBytes)
    if (start + kept > data.length) return 0
    const after = start + length
    if (after + 1 < data.length && (data[after] !== carriageReturn || data[after + 1] !== 0x0a)) return this.#lose(at)
    this.#missing--
    // A kept argument must outlive its piece if the command continues in the next one.
    if (this.#args.length < this.#maxArguments) this.#args.push(Buffer.from(data.subarray(start, start + kept)))
    return after + 2
  }

  #inline(data: Buffer, at: number, end: number): number {
    const line = data.toString('latin1', at, end)
    // An inline command is a word and arguments; anything else is the middle of something.
    if (!/^[A-Za-z][A-Za-z0-9_.|-]*( .*)?$/.test(line) || data[end + 1] !== 0x0a) return this.#lose(at)
    this.#commandBytes = end + 2 - at
    this.#args = line.split(/ +/).map((word) => Buffer.from(word, 'latin1'))
    this.#finish()
    return end + 2
  }

  #waitForLine(data: Buffer, at: number): number {
    if (data.length - at > longestLine) return this.#lose(at)
    return 0
  }

  /** There is no command at `at`: the search starts after it. */
  #lose(at: number): number {
    this.#search()
    this.counts.skippedBytes++
    return at + 1
  }

  #search(): void {
    if (!this.#isSearching) this.counts.resyncs++
    this.#isSearching = true
    this.#args = []
    this.#missing = 0
    this.#skip = 0
  }

  /** Where a command definitely begins, at or after `from`; ends the search if it finds one. */
  #find(data: Buffer, from: number): number {
    for (let at = data.indexOf(star, from); at >= 0; at = data.indexOf(star, at + 1)) {
      const end = data.indexOf(carriageReturn, at)
      if (end < 0 || end + 2 >= data.length) {
        // Too few bytes to tell: keep them for the next piece, unless no line is that long.
        if (data.length - at < 24) return at
        continue
      }
      const count = number(data, at + 1, end)
      if (count > 0 && count <= mostArguments && data[end + 1] === 0x0a && data[end + 2] === dollar) {
        this.#isSearching = false
        return at
      }
    }
    return data.length
  }

  #finish(): void {
    const args = this.#args
    this.#args = []
    this.counts.commands++
    this.#visit(args, this.#commandBytes)
  }
}

/** The number in the digits from `start` to `end`; −1 if they are not one. */
function number(data: Buffer, start: number, end: number): number {
  if (end <= start || end - start > 10) return -1
  let value = 0
  for (let at = start; at < end; at++) {
    const digit = data[at]! - 0x30
    if (digit < 0 || digit > 9) return -1
    value = value * 10 + digit
  }
  return value
}
