/** Makes captures by hand: packets in pcap and pcapng, IPv4 and IPv6, on several kinds of network. */
export interface MadeSegment {
  readonly sequence: number
  readonly payload?: Uint8Array
  readonly flags?: number
  readonly sourcePort?: number
  readonly port?: number
}

export const synFlag = 2
export const finFlag = 1
const ackFlag = 16

/** A TCP segment in an IP packet. */
export function ipPacket(segment: MadeSegment, version: 4 | 6 = 4): Buffer {
  const payload = segment.payload ?? new Uint8Array(0)
  const tcp = Buffer.alloc(20)
  tcp.writeUInt16BE(segment.sourcePort ?? 50000, 0)
  tcp.writeUInt16BE(segment.port ?? 6379, 2)
  tcp.writeUInt32BE(segment.sequence >>> 0, 4)
  tcp[12] = 5 << 4
  tcp[13] = segment.flags ?? ackFlag
  const body = Buffer.concat([tcp, payload])
  if (version === 4) {
    const ip = Buffer.alloc(20)
    ip[0] = 0x45
    ip.writeUInt16BE(20 + body.length, 2)
    ip[9] = 6
    ip.set([127, 0, 0, 1, 127, 0, 0, 1], 12)
    return Buffer.concat([ip, body])
  }
  const ip = Buffer.alloc(48)
  ip[0] = 0x60
  ip.writeUInt16BE(8 + body.length, 4)
  // With a hop-by-hop header in between.
  ip[6] = 0
  ip[23] = 1
  ip[39] = 1
  ip[40] = 6
  return Buffer.concat([ip, body])
}

/** The bytes before the IP packet on each kind of network. */
export const linkHeaders: Readonly<Record<number, Buffer>> = {
  1: Buffer.concat([Buffer.alloc(12), Buffer.from([8, 0])]),
  0: Buffer.from([2, 0, 0, 0]),
  101: Buffer.alloc(0),
  113: Buffer.alloc(16),
  276: Buffer.alloc(20),
}

/** A classic capture. */
export function pcap(
  packets: readonly Buffer[],
  linkType = 1,
  options: { isBig?: boolean; snapBytes?: number } = {},
): Buffer {
  const u32 = (value: number) => {
    const bytes = Buffer.alloc(4)
    if (options.isBig) bytes.writeUInt32BE(value)
    else bytes.writeUInt32LE(value)
    return bytes
  }
  const parts = [u32(0xa1b2c3d4), Buffer.alloc(16), u32(linkType)]
  packets.forEach((packet, index) => {
    const frame = Buffer.concat([linkHeaders[linkType]!, packet])
    const kept = frame.subarray(0, options.snapBytes ?? frame.length)
    parts.push(u32(1_700_000_000 + index), u32(0), u32(kept.length), u32(frame.length), kept)
  })
  return Buffer.concat(parts)
}

/** A capture in blocks, with nanoseconds. */
export function pcapng(packets: readonly Buffer[], linkType = 1): Buffer {
  const block = (type: number, body: Buffer) => {
    const padded = Buffer.concat([body, Buffer.alloc((4 - (body.length % 4)) % 4)])
    const bytes = Buffer.alloc(12 + padded.length)
    bytes.writeUInt32LE(type, 0)
    bytes.writeUInt32LE(bytes.length, 4)
    padded.copy(bytes, 8)
    bytes.writeUInt32LE(bytes.length, bytes.length - 4)
    return bytes
  }
  const section = Buffer.alloc(16)
  section.writeUInt32LE(0x1a2b3c4d, 0)
  section.fill(255, 8)
  const nanoseconds = Buffer.from([linkType & 255, linkType >> 8, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, 9, 0, 0, 0, 0, 0, 0, 0])
  return Buffer.concat([
    block(0x0a0d0d0a, section),
    block(1, nanoseconds),
    block(5, Buffer.alloc(12)),
    ...packets.map((packet, index) => {
      const frame = Buffer.concat([linkHeaders[linkType]!, packet])
      const head = Buffer.alloc(20)
      const ticks = BigInt(1_700_000_000 + index) * 1_000_000_000n
      head.writeUInt32LE(Number(ticks >> 32n), 4)
      head.writeUInt32LE(Number(ticks & 0xffffffffn), 8)
      head.writeUInt32LE(frame.length, 12)
      head.writeUInt32LE(frame.length, 16)
      return block(6, Buffer.concat([head, frame]))
    }),
  ])
}
