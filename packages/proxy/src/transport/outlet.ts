import type { Transport } from './transport.ts'

/**
 * Gathers what goes out on one connection and writes it once a turn of the event loop.
 *
 * A system call for each reply would be two thirds of a proxy's CPU. All that the events of one turn put into an outlet
 * leaves together when the turn ends (`setImmediate`), from memory that is used again as soon as the kernel has it.
 * Before `open` what is put waits: a connection to Redis shows who it is first.
 */
export class Outlet {
  #transport: Transport | undefined
  #chunk: Buffer | undefined
  #length = 0
  #isDirty = false
  #waiting: Buffer[] = []
  #waitingBytes = 0

  /** Bytes that have not left the process. */
  get queuedBytes(): number {
    return this.#length + this.#waitingBytes + (this.#transport?.queuedBytes ?? 0)
  }

  /** From now on what is put leaves over `transport`, first what waits. */
  open(transport: Transport): void {
    this.#transport = transport
    for (const chunk of this.#waiting) transport.write(chunk)
    this.#waiting = []
    this.#waitingBytes = 0
    if (this.#length > 0) this.#mark()
  }

  put(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (length > chunkBytes - this.#length) {
      this.flush()
      if (length > chunkBytes) {
        this.#write(copyOf(bytes, start, end))
        return
      }
    }
    const chunk = (this.#chunk ??= spareChunks.pop() ?? Buffer.allocUnsafeSlow(chunkBytes))
    // Below some 24 bytes a loop is faster than the way into native code.
    if (length < 24) {
      let at = this.#length
      for (let index = start; index < end; index++) chunk[at++] = bytes[index]!
    } else chunk.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.#length)
    this.#length += length
    if (!this.#isDirty && this.#transport !== undefined) this.#mark()
  }

  /** Writes what was put so far. */
  flush(): void {
    this.#isDirty = false
    const chunk = this.#chunk
    if (chunk === undefined || this.#length === 0) return
    const bytes = this.#length === chunk.length ? chunk : chunk.subarray(0, this.#length)
    this.#chunk = undefined
    this.#length = 0
    if (this.#write(bytes) && spareChunks.length < maxSpareChunks) spareChunks.push(chunk)
  }

  #write(bytes: Buffer): boolean {
    if (this.#transport !== undefined) return this.#transport.write(bytes)
    this.#waiting.push(bytes)
    this.#waitingBytes += bytes.length
    return false
  }

  #mark(): void {
    this.#isDirty = true
    dirty.push(this)
    if (dirty.length === 1) setImmediate(flushDirty)
  }
}

const chunkBytes = 64 * 1024
const maxSpareChunks = 256
const spareChunks: Buffer[] = []
let dirty: Outlet[] = []
let flushing: Outlet[] = []

function flushDirty(): void {
  // Writing may put more into another outlet: that leaves with the next turn.
  const outlets = dirty
  dirty = flushing
  flushing = outlets
  for (let index = 0; index < outlets.length; index++) outlets[index]!.flush()
  outlets.length = 0
}

function copyOf(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}
