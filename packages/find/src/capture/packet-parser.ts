import { CaptureFormatError } from '../errors.ts'

/** One packet of a capture; `bytes` is a view that lasts until the callback returns. */
export interface Packet {
  linkType: number
  bytes: Uint8Array
  /** The packet's length on the wire; larger than `bytes` if the capture truncated it. */
  originalBytes: number
  timestampMs: number
}

interface Interface {
  readonly linkType: number
  readonly ticksPerMs: number
}

const classicMagics: Readonly<Record<number, { isLittle: boolean; ticksPerMs: number }>> = {
  2712847316: { isLittle: false, ticksPerMs: 1e3 },
  3569595041: { isLittle: true, ticksPerMs: 1e3 },
  2712812621: { isLittle: false, ticksPerMs: 1e6 },
  1295823521: { isLittle: true, ticksPerMs: 1e6 },
}
const sectionHeader = 0x0a0d0d0a
const byteOrderMagic = 0x1a2b3c4d

/**
 * Reads pcap and pcapng as they stream from tcpdump or a file, in either byte order, with micro- or nanoseconds.
 *
 * Classic pcap is a header of 24 bytes followed by packets with 16-byte headers. Pcapng is a chain of blocks, each with
 * its length at both ends; only sections (with their byte order), interfaces (with link type and clock), and enhanced
 * or simple packets matter here, and all others are skipped. A length above `maxPacketBytes` is damage, not a packet.
 */
export class PacketParser {
  readonly #packet: Packet = { linkType: 0, bytes: new Uint8Array(0), originalBytes: 0, timestampMs: 0 }
  readonly #visit: (packet: Packet) => void
  readonly #maxPacketBytes: number
  #rest = Buffer.alloc(0)
  #offset = 0
  #format: 'unknown' | 'pcap' | 'pcapng' = 'unknown'
  #isLittle = true
  #interfaces: Interface[] = []

  constructor(visit: (packet: Packet) => void, maxPacketBytes: number = 1 << 20) {
    this.#visit = visit
    this.#maxPacketBytes = maxPacketBytes
  }

  push(chunk: Buffer): void {
    const data = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    let at = 0
    for (;;) {
      const size = this.#take(data, at)
      if (size === 0) break
      at += size
      this.#offset += size
    }
    // Copied, so that a few bytes do not keep a large chunk alive.
    this.#rest = at === data.length ? Buffer.alloc(0) : Buffer.from(data.subarray(at))
  }

  /** Fails if the capture ends inside a packet or never began. */
  end(): void {
    if (this.#format === 'unknown') this.#fail('this is neither pcap nor pcapng')
    if (this.#rest.length > 0) this.#fail('the capture ends in the middle of a packet')
  }

  /** Size of the item at `at`, or 0 if it is incomplete. */
  #take(data: Buffer, at: number): number {
    switch (this.#format) {
      case 'unknown':
        return this.#begin(data, at)
      case 'pcap':
        return this.#classicPacket(data, at)
      case 'pcapng':
        return this.#block(data, at)
    }
  }

  #begin(data: Buffer, at: number): number {
    if (data.length - at < 24) return 0
    const magic = data.readUInt32BE(at)
    if (magic === sectionHeader) {
      this.#format = 'pcapng'
      return this.#block(data, at)
    }
    const kind = classicMagics[magic]
    if (kind === undefined) this.#fail('this is neither pcap nor pcapng')
    this.#isLittle = kind.isLittle
    // The upper bits of the link type say whether frames have a checksum at their end.
    this.#interfaces = [{ linkType: this.#u32(data, at + 20) & 0x0fffffff, ticksPerMs: kind.ticksPerMs }]
    this.#format = 'pcap'
    return 24
  }

  #classicPacket(data: Buffer, at: number): number {
    if (data.length - at < 16) return 0
    const captured = this.#u32(data, at + 8)
    if (captured > this.#maxPacketBytes) this.#fail(`a packet of ${captured} bytes is impossible`)
    if (data.length - at < 16 + captured) return 0
    const { linkType, ticksPerMs } = this.#interfaces[0]!
    const timestampMs = this.#u32(data, at) * 1000 + this.#u32(data, at + 4) / ticksPerMs
    this.#emit(linkType, data.subarray(at + 16, at + 16 + captured), this.#u32(data, at + 12), timestampMs)
    return 16 + captured
  }

  #block(data: Buffer, at: number): number {
    if (data.length - at < 12) return 0
    if (data.readUInt32BE(at) === sectionHeader) {
      this.#isLittle = data.readUInt32LE(at + 8) === byteOrderMagic
      if (!this.#isLittle && data.readUInt32BE(at + 8) !== byteOrderMagic) this.#fail('a section has no byte order')
      this.#interfaces = []
    }
    const type = this.#u32(data, at)
    const size = this.#u32(data, at + 4)
    if (size < 12 || size % 4 !== 0 || size > this.#maxPacketBytes + 65536) {
      this.#fail(`a block of ${size} bytes is impossible`)
    }
    if (data.length - at < size) return 0
    if (this.#u32(data, at + size - 4) !== size) this.#fail('the two lengths of a block differ')
    if (type === 1) this.#interface(data, at, size)
    else if (type === 6) this.#enhancedPacket(data, at, size)
    else if (type === 3) this.#simplePacket(data, at, size)
    return size
  }

  #interface(data: Buffer, at: number, size: number): void {
    if (size < 20 || this.#interfaces.length >= 4096) this.#fail('an interface block is damaged')
    const linkType = this.#isLittle ? data.readUInt16LE(at + 8) : data.readUInt16BE(at + 8)
    let ticksPerMs = 1e3
    for (let option = at + 16; option + 4 <= at + size - 4; ) {
      const code = this.#isLittle ? data.readUInt16LE(option) : data.readUInt16BE(option)
      const length = this.#isLittle ? data.readUInt16LE(option + 2) : data.readUInt16BE(option + 2)
      if (code === 0) break
      if (code === 9 && length === 1) {
        const resolution = data[option + 4]!
        ticksPerMs = (resolution & 0x80 ? 2 ** (resolution & 0x7f) : 10 ** resolution) / 1000
      }
      option += 4 + ((length + 3) & ~3)
    }
    this.#interfaces.push({ linkType, ticksPerMs })
  }

  #enhancedPacket(data: Buffer, at: number, size: number): void {
    if (size < 32) this.#fail('a packet block is too short')
    const from = this.#interfaces[this.#u32(data, at + 8)]
    if (from === undefined) this.#fail('a packet names an interface that does not exist')
    const captured = this.#u32(data, at + 20)
    if (captured > size - 32) this.#fail(`a packet of ${captured} bytes does not fit into its block`)
    const ticks = this.#u32(data, at + 12) * 2 ** 32 + this.#u32(data, at + 16)
    const bytes = data.subarray(at + 28, at + 28 + captured)
    this.#emit(from.linkType, bytes, this.#u32(data, at + 24), ticks / from.ticksPerMs)
  }

  #simplePacket(data: Buffer, at: number, size: number): void {
    const from = this.#interfaces[0]
    if (from === undefined || size < 16) this.#fail('a packet has no interface')
    const original = this.#u32(data, at + 8)
    this.#emit(from.linkType, data.subarray(at + 12, at + 12 + Math.min(original, size - 16)), original, 0)
  }

  #emit(linkType: number, bytes: Uint8Array, originalBytes: number, timestampMs: number): void {
    const packet = this.#packet
    packet.linkType = linkType
    packet.bytes = bytes
    packet.originalBytes = originalBytes
    packet.timestampMs = timestampMs
    this.#visit(packet)
  }

  #u32(data: Buffer, at: number): number {
    return this.#isLittle ? data.readUInt32LE(at) : data.readUInt32BE(at)
  }

  #fail(message: string): never {
    throw new CaptureFormatError(message, this.#offset)
  }
}
