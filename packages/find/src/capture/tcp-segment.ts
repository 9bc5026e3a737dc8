/** A packet's TCP data; one object is reused for all packets. */
export interface TcpSegment {
  /** Identifies the two ends: addresses and ports, as bytes in Latin-1. */
  flow: string
  sourcePort: number
  destinationPort: number
  sequence: number
  isSyn: boolean
  isEnd: boolean
  /** Offset of the payload in the packet. */
  start: number
  end: number
  /** Payload bytes on the wire; more than `end − start` if the capture truncated the packet. */
  payloadBytes: number
}

/** Why a packet contains no segment. */
export type NoSegment = 'not-tcp' | 'fragment' | 'cut' | 'unknown-link'

const ethernet = 1

/** The number of bytes before the IP header for each link type, or the position of the payload's type. */
function networkStart(linkType: number, bytes: Uint8Array): number {
  switch (linkType) {
    case ethernet: {
      let at = 12
      // VLAN tags, possibly two, come between the addresses and the type.
      while (isVlan((bytes[at]! << 8) | bytes[at + 1]!)) at += 4
      return at + 2
    }
    case 0:
    case 108:
      return 4
    case 12:
    case 14:
    case 101:
    case 228:
    case 229:
      return 0
    case 113:
      return 16
    case 276:
      return 20
    default:
      return -1
  }
}

function isVlan(type: number): boolean {
  return type === 0x8100 || type === 0x88a8 || type === 0x9100
}

/** Finds the TCP segment in a packet: Ethernet with VLANs, loopback, Linux cooked 1 and 2, raw IP; IPv4 and IPv6. */
export function decodeSegment(
  linkType: number,
  bytes: Uint8Array,
  originalBytes: number,
  segment: TcpSegment,
): NoSegment | undefined {
  const at = networkStart(linkType, bytes)
  if (at < 0) return 'unknown-link'
  if (at + 20 > bytes.length) return 'not-tcp'
  const version = bytes[at]! >> 4
  if (version === 4) return decodeIpv4(bytes, at, originalBytes, segment)
  if (version === 6) return decodeIpv6(bytes, at, originalBytes, segment)
  return 'not-tcp'
}

function decodeIpv4(bytes: Uint8Array, at: number, originalBytes: number, segment: TcpSegment): NoSegment | undefined {
  if (bytes[at + 9] !== 6) return 'not-tcp'
  const fragment = u16(bytes, at + 6)
  // More fragments follow, or this is not the first.
  if ((fragment & 0x3fff) !== 0) return 'fragment'
  const tcp = at + (bytes[at]! & 15) * 4
  // With segmentation offload the kernel leaves the length at 0: then everything that follows belongs to it.
  const total = u16(bytes, at + 2)
  const networkEnd = total === 0 ? originalBytes : at + total
  return decodeTcp(bytes, at + 12, 8, tcp, networkEnd, segment)
}

function decodeIpv6(bytes: Uint8Array, at: number, originalBytes: number, segment: TcpSegment): NoSegment | undefined {
  if (at + 40 > bytes.length) return 'cut'
  const payload = u16(bytes, at + 4)
  const networkEnd = payload === 0 ? originalBytes : at + 40 + payload
  let next = bytes[at + 6]!
  let header = at + 40
  while (next === 0 || next === 43 || next === 60 || next === 44 || next === 51) {
    if (header + 8 > bytes.length) return 'cut'
    // An atomic fragment (offset 0, none following) is a whole packet.
    if (next === 44 && (u16(bytes, header + 2) & 0xfff9) !== 0) return 'fragment'
    const size = next === 44 ? 8 : next === 51 ? (bytes[header + 1]! + 2) * 4 : (bytes[header + 1]! + 1) * 8
    next = bytes[header]!
    header += size
  }
  if (next !== 6) return 'not-tcp'
  return decodeTcp(bytes, at + 8, 32, header, networkEnd, segment)
}

function decodeTcp(
  bytes: Uint8Array,
  addresses: number,
  addressBytes: number,
  at: number,
  networkEnd: number,
  segment: TcpSegment,
): NoSegment | undefined {
  if (at + 20 > bytes.length) return 'cut'
  const start = at + (bytes[at + 12]! >> 4) * 4
  const flags = bytes[at + 13]!
  segment.sourcePort = u16(bytes, at)
  segment.destinationPort = u16(bytes, at + 2)
  segment.sequence = ((bytes[at + 4]! << 24) | (bytes[at + 5]! << 16) | (bytes[at + 6]! << 8) | bytes[at + 7]!) >>> 0
  segment.isSyn = (flags & 2) !== 0
  segment.isEnd = (flags & 5) !== 0
  segment.start = Math.min(start, bytes.length)
  segment.end = Math.max(segment.start, Math.min(networkEnd, bytes.length))
  segment.payloadBytes = Math.max(0, networkEnd - start)
  let flow = String.fromCharCode(segment.sourcePort, segment.destinationPort)
  for (let index = addresses; index < addresses + addressBytes; index += 2) {
    flow += String.fromCharCode((bytes[index]! << 8) | bytes[index + 1]!)
  }
  segment.flow = flow
  return undefined
}

function u16(bytes: Uint8Array, at: number): number {
  return (bytes[at]! << 8) | bytes[at + 1]!
}

/** An empty segment to decode into. */
export function newSegment(): TcpSegment {
  return {
    flow: '',
    sourcePort: 0,
    destinationPort: 0,
    sequence: 0,
    isSyn: false,
    isEnd: false,
    start: 0,
    end: 0,
    payloadBytes: 0,
  }
}
