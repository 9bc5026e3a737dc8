import type { Transport } from './transport.ts'

/**
 * Gathers what goes out on one connection and writes it with as few system calls as can be: they are two thirds of a
 * proxy's CPU.
 *
 * *To clients* it leaves at the end of the event that made it (`flushClients`): whatever Redis sent in one piece becomes
 * one write per client, and waiting longer would gather nothing. *To Redis* it leaves at the end of the loop's turn
 * (`setImmediate`), for the requests of many clients of one turn go over one connection; but where the turn before had
 * one event only there is nobody to wait for, and it leaves at once (`flushIfAlone`).
 *
 * The memory is used again as soon as the kernel has the bytes. Before `open` what is put waits: a connection to Redis
 * shows who it is first.
 */
export class Outlet {
  readonly #isToClient: boolean
  #transport: Transport | undefined
  #chunk: Buffer | undefined
  #length = 0
  #isDirty = false
  #waiting: Buffer[] = []
  #waitingBytes = 0

  constructor(to: 'client' | 'redis') {
    this.#isToClient = to === 'client'
  }

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
    if (this.#isToClient) {
      toClients.push(this)
      // A timer or a lost connection made it: nobody else will flush.
      if (!isInEvent && toClients.length === 1) setImmediate(flushClients)
      return
    }
    toRedis.push(this)
    if (toRedis.length === 1) setImmediate(flushRedis)
  }
}

const chunkBytes = 64 * 1024
const maxSpareChunks = 256
const spareChunks: Buffer[] = []
const toClients: Outlet[] = []
const toRedis: Outlet[] = []
let events = 0
let eventsBefore = 0

let isInEvent = false

/** Bytes came in: `flushClients` will follow when they are dealt with. */
export function beginEvent(): void {
  isInEvent = true
}

/** Writes what the event at hand put for clients. */
export function flushClients(): void {
  isInEvent = false
  for (let index = 0; index < toClients.length; index++) toClients[index]!.flush()
  toClients.length = 0
}

/** Ends a client's event: its requests leave now if it is the only one of its turn, else with those of the others. */
export function flushIfAlone(): void {
  if (++events === 1 && eventsBefore <= 1 && toRedis.length > 0) {
    for (let index = 0; index < toRedis.length; index++) toRedis[index]!.flush()
    // The immediate that is planned finds nothing to write and ends the turn's count.
  }
}

function flushRedis(): void {
  eventsBefore = events
  events = 0
  for (let index = 0; index < toRedis.length; index++) toRedis[index]!.flush()
  toRedis.length = 0
}

function copyOf(bytes: Uint8Array, start: number, end: number): Buffer {
  const copy = Buffer.allocUnsafeSlow(end - start)
  copy.set(bytes.subarray(start, end))
  return copy
}
