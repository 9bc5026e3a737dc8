import type { Transport } from './transport.ts'
import type { Gathering, Turn } from './turn.ts'

/**
 * Collects what goes out on one connection and writes it with as few system calls as possible: they are two thirds of a
 * proxy's CPU.
 *
 * Output from many events of one turn of the loop is sent at the end of that turn (`Turn`), to Redis first: the
 * requests of many clients go over one connection, and a peer that is woken once finds the work of many writes, whereas
 * waking it for each write is the larger part of a write's cost. If the previous turn had only one event, there is
 * nobody to wait for, and the output is sent at the end of the event (`endEvent`).
 *
 * Within an event nothing is copied before it ends or something else is added: the requests of a pipeline, and the
 * replies to it, are contiguous in what was received, and are copied in one piece. What is kept for longer, such as the
 * replies of hot keys, is not copied at all if nothing else goes with it.
 *
 * The memory is reused as soon as the kernel has the bytes. Before `open`, output waits: a connection to Redis
 * authenticates first.
 */
export class Outlet implements Gathering {
  readonly #isToClient: boolean
  readonly #turn: Turn
  #transport: Transport | undefined
  #chunk: Buffer | undefined
  #length = 0
  #isDirty = false
  /** The last output, not copied: `#run` from `#runStart` to `#runEnd`. */
  #run: Uint8Array | undefined
  #runStart = 0
  #runEnd = 0
  /** True if its memory never changes. */
  #isRunKept = false
  #isListed = false
  #waiting: Buffer[] = []
  #waitingBytes = 0

  constructor(to: 'client' | 'redis', turn: Turn) {
    this.#isToClient = to === 'client'
    this.#turn = turn
  }

  /** Bytes that have not left the process. */
  get queuedBytes(): number {
    const run = this.#run === undefined ? 0 : this.#runEnd - this.#runStart
    return run + this.#length + this.#waitingBytes + (this.#transport?.queuedBytes ?? 0)
  }

  /** From now on output goes over `transport`, first whatever was waiting. */
  open(transport: Transport): void {
    this.#transport = transport
    for (const chunk of this.#waiting) transport.write(chunk)
    this.#waiting = []
    this.#waitingBytes = 0
    if (this.#length > 0 && !this.#isDirty) this.#mark()
  }

  /** Sends bytes that do not change until the event ends, or ever if they are kept. */
  put(bytes: Uint8Array, start: number, end: number, isKept = false): void {
    if (bytes === this.#run && start === this.#runEnd) {
      this.#runEnd = end
      return
    }
    if (this.#run !== undefined) this.#copyRun()
    if (!this.#turn.isInEvent) {
      this.#copy(bytes, start, end)
      return
    }
    this.#run = bytes
    this.#runStart = start
    this.#runEnd = end
    this.#isRunKept = isKept
    if (this.#isListed) return
    this.#isListed = true
    this.#turn.lend(this)
  }

  endEvent(): void {
    this.#isListed = false
    if (this.#run === undefined) return
    if (this.#isRunKept && this.#length === 0 && this.#transport !== undefined) {
      if (!this.#isDirty) this.#mark()
    } else this.#copyRun()
  }

  #copyRun(): void {
    const bytes = this.#run!
    this.#run = undefined
    this.#copy(bytes, this.#runStart, this.#runEnd)
  }

  #copy(bytes: Uint8Array, start: number, end: number): void {
    const length = end - start
    if (length > chunkBytes - this.#length) {
      this.#flushChunk()
      if (length > chunkBytes) {
        this.#write(copyOf(bytes, start, end))
        return
      }
    }
    const chunk = (this.#chunk ??= spareChunks.pop() ?? Buffer.allocUnsafeSlow(chunkBytes))
    // Below some 24 bytes a loop is faster than a native call.
    if (length < 24) {
      let at = this.#length
      for (let index = start; index < end; index++) chunk[at++] = bytes[index]!
    } else chunk.set(start === 0 && end === bytes.length ? bytes : bytes.subarray(start, end), this.#length)
    this.#length += length
    if (!this.#isDirty && this.#transport !== undefined) this.#mark()
  }

  /** Writes the output so far. */
  flush(): void {
    const run = this.#run
    if (run !== undefined && this.#isRunKept && this.#length === 0) {
      this.#run = undefined
      this.#isDirty = false
      this.#write(viewOf(run, this.#runStart, this.#runEnd))
      return
    }
    if (run !== undefined) this.#copyRun()
    this.#isDirty = false
    this.#flushChunk()
  }

  #flushChunk(): void {
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
    this.#turn.mark(this, this.#isToClient)
  }
}

const chunkBytes = 64 * 1024
const maxSpareChunks = 256
const spareChunks: Buffer[] = []

/** Many clients get the same bytes, so the view of them is kept too. */
const last = { bytes: new Uint8Array(0) as Uint8Array, start: 0, end: 0, view: Buffer.alloc(0) }

function viewOf(bytes: Uint8Array, start: number, end: number): Buffer {
  if (last.bytes !== bytes || last.start !== start || last.end !== end) {
    last.bytes = bytes
    last.start = start
    last.end = end
    last.view = Buffer.from(bytes.buffer as ArrayBuffer, bytes.byteOffset + start, end - start)
  }
  return last.view
}

function copyOf(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}
