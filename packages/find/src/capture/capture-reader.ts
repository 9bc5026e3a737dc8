import { CommandAccessCounter, type CommandAccessCounterOptions } from '../access/command-access-counter.ts'
import { type CommandCounts, CommandStream } from './command-stream.ts'
import { type Packet, PacketParser } from './packet-parser.ts'
import { type ReassemblyCounts, type ReassemblyOptions, TcpReassembly } from './tcp-reassembly.ts'
import { decodeSegment, newSegment } from './tcp-segment.ts'

/** How a capture is read. */
export interface CaptureReaderOptions extends CommandAccessCounterOptions, ReassemblyOptions {
  /** Server ports: only traffic to them is read. @default [6379] */
  readonly ports?: readonly number[]
}

/** What a capture contained, and what could not be read. */
export interface CaptureCounts extends ReassemblyCounts, CommandCounts {
  packets: number
  /** Packets that are not TCP or go to another port. */
  otherPackets: number
  /** IP fragments, which are not reassembled. */
  fragments: number
  /** Packets cut by the capture before their TCP header ended. */
  cutPackets: number
  /** Packets from an unknown type of network. */
  unknownLinks: number
  /** TLS connections, which cannot be read. */
  tlsConnections: number
}

/** Turns the bytes of a capture into counted accesses: packets, segments, streams, commands, keys. */
export class CaptureReader {
  readonly counter: CommandAccessCounter
  readonly #packets: PacketParser
  readonly #reassembly: TcpReassembly
  readonly #commandCounts: CommandCounts = { commands: 0, skippedBytes: 0, resyncs: 0 }
  readonly #counts = { packets: 0, otherPackets: 0, fragments: 0, cutPackets: 0, unknownLinks: 0, tlsConnections: 0 }
  readonly #segment = newSegment()
  readonly #ports: ReadonlySet<number>
  #firstMs = Number.POSITIVE_INFINITY
  #lastMs = 0

  constructor(options: CaptureReaderOptions = {}) {
    this.counter = new CommandAccessCounter(options)
    this.#ports = new Set(options.ports ?? [6379])
    this.#packets = new PacketParser((packet) => this.#packet(packet))
    this.#reassembly = new TcpReassembly(() => this.#sink(), options)
  }

  push(chunk: Buffer): void {
    this.#packets.push(chunk)
  }

  /** Ends the input: reads what was waiting for missing segments. `isCut` allows the capture to end inside a packet. */
  end(isCut = false): void {
    this.#reassembly.closeAll()
    if (!isCut) this.#packets.end()
  }

  get counts(): CaptureCounts {
    return { ...this.#counts, ...this.#reassembly.counts, ...this.#commandCounts }
  }

  /** Seconds from the first packet to the last. */
  get seconds(): number {
    return this.#lastMs > this.#firstMs ? (this.#lastMs - this.#firstMs) / 1000 : 0
  }

  #packet(packet: Packet): void {
    const counts = this.#counts
    counts.packets++
    if (packet.timestampMs > 0) {
      if (packet.timestampMs < this.#firstMs) this.#firstMs = packet.timestampMs
      if (packet.timestampMs > this.#lastMs) this.#lastMs = packet.timestampMs
    }
    const segment = this.#segment
    const failure = decodeSegment(packet.linkType, packet.bytes, packet.originalBytes, segment)
    if (failure === 'fragment') counts.fragments++
    else if (failure === 'cut') counts.cutPackets++
    else if (failure === 'unknown-link') counts.unknownLinks++
    else if (failure !== undefined || !this.#ports.has(segment.destinationPort)) counts.otherPackets++
    if (failure !== undefined || !this.#ports.has(segment.destinationPort)) return
    if (segment.isSyn) this.#reassembly.open(segment.flow, segment.sequence)
    else if (segment.payloadBytes > 0) {
      const payload = packet.bytes.subarray(segment.start, segment.end)
      this.#reassembly.add(segment.flow, segment.sequence, payload, segment.payloadBytes)
    }
    if (segment.isEnd) this.#reassembly.close(segment.flow)
  }

  #sink() {
    const stream = new CommandStream((args, bytes) => this.counter.add(args, bytes), this.#commandCounts)
    let isFirst = true
    let isTls = false
    return {
      data: (bytes: Uint8Array) => {
        if (isFirst) {
          isFirst = false
          // A TLS handshake record, version 3.x.
          isTls = bytes[0] === 0x16 && bytes[1] === 3
          if (isTls) this.#counts.tlsConnections++
        }
        if (!isTls) stream.data(bytes)
      },
      gap: () => stream.gap(),
    }
  }
}
