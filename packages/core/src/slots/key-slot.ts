/**
 * Redis Cluster's hash slot of a key: CRC16 (XMODEM) of the key, or of its hash tag, modulo 16,384.
 *
 * The tag is the text between the first `{` and the first `}` after it, if not empty; keys with the same tag share a
 * slot and so a node.
 */
export const slotCount = 16384

const crcTable = /* @__PURE__ */ makeCrcTable()

function makeCrcTable(): Uint16Array {
  const table = new Uint16Array(256)
  for (let byte = 0; byte < 256; byte++) {
    let crc = byte << 8
    for (let bit = 0; bit < 8; bit++) crc = crc & 0x8000 ? (crc << 1) ^ 0x1021 : crc << 1
    table[byte] = crc
  }
  return table
}

const encoder = new TextEncoder()
const openBrace = 0x7b
const closeBrace = 0x7d

/** The slot of the key in `bytes` from `start` to `end`. */
export function keySlotOfBytes(bytes: Uint8Array, start = 0, end: number = bytes.length): number {
  let from = start
  let to = end
  for (let open = start; open < end; open++) {
    if (bytes[open] !== openBrace) continue
    const close = bytes.indexOf(closeBrace, open + 1)
    if (close > open + 1 && close < end) {
      from = open + 1
      to = close
    }
    break
  }
  let crc = 0
  for (let index = from; index < to; index++) crc = ((crc << 8) & 0xffff) ^ crcTable[(crc >> 8) ^ bytes[index]!]!
  return crc & (slotCount - 1)
}

/** The slot of a key given as a string (its UTF-8 bytes) or as bytes. */
export function keySlot(key: string | Uint8Array): number {
  return keySlotOfBytes(typeof key === 'string' ? encoder.encode(key) : key)
}
