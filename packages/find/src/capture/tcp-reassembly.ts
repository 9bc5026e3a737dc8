/** Receives the bytes of one direction of a connection, in order. */
export interface StreamSink {
  data(bytes: Uint8Array): void
  /** Bytes are missing here: what follows may start anywhere in a command. */
  gap(): void
}

/** Bounds for reordering segments. */
export interface ReassemblyOptions {
  /** Number of connections followed at once; beyond that the oldest is dropped. @default 65536 */
  readonly maxFlows?: number
  /** Bytes per connection that may wait for a missing segment before it is given up. @default 1 MiB */
  readonly maxWaitingBytes?: number
  /** Segments that wait for a missing one before it is given up. @default 256 */
  readonly maxWaitingSegments?: number
}

/** What happened to segments along the way. */
export interface ReassemblyCounts {
  flows: number
  /** Segments with payload. */
  segments: number
  /** Segments that arrived early and were put in order. */
  reordered: number
  /** Bytes that had already arrived. */
  duplicateBytes: number
  /** Places where bytes were lost for good, and how many bytes. */
  gaps: number
  lostBytes: number
  /** Connections dropped because there were too many. */
  droppedFlows: number
}

interface Waiting {
  readonly sequence: number
  readonly bytes: Uint8Array
  /** Bytes of the segment on the wire, if the capture truncated it. */
  readonly wireBytes: number
}

interface Flow {
  readonly sink: StreamSink
  next: number
  isStarted: boolean
  waiting: Waiting[]
  waitingBytes: number
}

/**
 * Puts the segments of TCP connections back in order.
 *
 * A segment is compared with the next expected byte in wrapping 32-bit arithmetic. Older bytes are duplicates and cut
 * off, the expected ones are passed on, later ones wait in order. When too much is waiting, the capture has lost the
 * missing bytes (the receiver had them, or TCP would have resent them by now): that is a gap, and reading continues
 * after it. A connection whose start was not seen begins with its first segment, at an unknown place in a command.
 */
export class TcpReassembly {
  readonly counts: ReassemblyCounts = {
    flows: 0,
    segments: 0,
    reordered: 0,
    duplicateBytes: 0,
    gaps: 0,
    lostBytes: 0,
    droppedFlows: 0,
  }
  readonly #flows = new Map<string, Flow>()
  readonly #makeSink: (flow: string) => StreamSink
  readonly #maxFlows: number
  readonly #maxWaitingBytes: number
  readonly #maxWaitingSegments: number

  constructor(makeSink: (flow: string) => StreamSink, options: ReassemblyOptions = {}) {
    this.#makeSink = makeSink
    this.#maxFlows = options.maxFlows ?? 65536
    this.#maxWaitingBytes = options.maxWaitingBytes ?? 1 << 20
    this.#maxWaitingSegments = options.maxWaitingSegments ?? 256
  }

  /** Opens the connection: the next byte is the one after `sequence`. */
  open(name: string, sequence: number): void {
    const known = this.#flows.get(name)
    const next = (sequence + 1) >>> 0
    // A repeated SYN of the same connection changes nothing; one far from what was read is a new connection.
    const passed = known?.isStarted ? (known.next - next) | 0 : -1
    if (passed >= 0 && passed < 1 << 20) return
    if (known !== undefined) this.close(name)
    const flow = this.#add(name)
    flow.next = next
    flow.isStarted = true
  }

  /** Adds the payload of a segment; `wireBytes` is larger if the capture truncated the packet. */
  add(name: string, sequence: number, bytes: Uint8Array, wireBytes: number = bytes.length): void {
    const { counts } = this
    counts.segments++
    let flow = this.#flows.get(name)
    if (flow === undefined) flow = this.#add(name)
    if (!flow.isStarted) {
      flow.isStarted = true
      flow.next = sequence
      flow.sink.gap()
    }
    const ahead = (sequence - flow.next) | 0
    if (ahead <= 0) {
      this.#deliver(flow, sequence, bytes, wireBytes)
      if (flow.waiting.length > 0) this.#drain(flow)
      return
    }
    counts.reordered++
    this.#wait(flow, sequence, bytes, wireBytes)
    while (flow.waitingBytes > this.#maxWaitingBytes || flow.waiting.length > this.#maxWaitingSegments)
      this.#giveUp(flow)
  }

  /** Closes the connection: what was waiting for missing bytes is read after the gap. */
  close(name: string): void {
    const flow = this.#flows.get(name)
    if (flow === undefined) return
    while (flow.waiting.length > 0) this.#giveUp(flow)
    this.#flows.delete(name)
  }

  /** Ends the capture, and with it all connections. */
  closeAll(): void {
    for (const name of [...this.#flows.keys()]) this.close(name)
  }

  #add(name: string): Flow {
    if (this.#flows.size >= this.#maxFlows) {
      const [oldest] = this.#flows.keys()
      this.close(oldest!)
      this.counts.droppedFlows++
    }
    const flow: Flow = { sink: this.#makeSink(name), next: 0, isStarted: false, waiting: [], waitingBytes: 0 }
    this.#flows.set(name, flow)
    this.counts.flows++
    return flow
  }

  /** A segment that begins at or before the expected byte: passes on its new part. */
  #deliver(flow: Flow, sequence: number, bytes: Uint8Array, wireBytes: number): void {
    const known = (flow.next - sequence) | 0
    if (known >= wireBytes) {
      this.counts.duplicateBytes += wireBytes
      return
    }
    this.counts.duplicateBytes += known
    flow.next = (sequence + wireBytes) >>> 0
    if (known < bytes.length) flow.sink.data(known === 0 ? bytes : bytes.subarray(known))
    const missing = wireBytes - Math.max(known, bytes.length)
    if (missing > 0) this.#gap(flow, missing)
  }

  #wait(flow: Flow, sequence: number, bytes: Uint8Array, wireBytes: number): void {
    const { waiting } = flow
    let at = waiting.length
    while (at > 0 && ((waiting[at - 1]!.sequence - sequence) | 0) > 0) at--
    const before = waiting[at - 1]
    if (before !== undefined && before.sequence === sequence && before.wireBytes >= wireBytes) {
      this.counts.duplicateBytes += wireBytes
      return
    }
    waiting.splice(at, 0, { sequence, bytes: Uint8Array.prototype.slice.call(bytes), wireBytes })
    flow.waitingBytes += bytes.length
  }

  #drain(flow: Flow): void {
    while (flow.waiting.length > 0 && ((flow.waiting[0]!.sequence - flow.next) | 0) <= 0) {
      const { sequence, bytes, wireBytes } = flow.waiting.shift()!
      flow.waitingBytes -= bytes.length
      this.#deliver(flow, sequence, bytes, wireBytes)
    }
  }

  #giveUp(flow: Flow): void {
    const { sequence } = flow.waiting[0]!
    this.#gap(flow, (sequence - flow.next) >>> 0)
    flow.next = sequence
    this.#drain(flow)
  }

  #gap(flow: Flow, lostBytes: number): void {
    this.counts.gaps++
    this.counts.lostBytes += lostBytes
    flow.sink.gap()
  }
}
