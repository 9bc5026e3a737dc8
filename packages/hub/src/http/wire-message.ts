const binaryFinal = 0x82
const length16 = 126
const length64 = 127

/**
 * A binary WebSocket message with its header, in one piece and unmasked, as a server sends it (RFC 6455, 5.2):
 *
 *     FIN 1 | RSV 0 | opcode 2     length < 126, or 126 and 16 bits, or 127 and 64 bits     payload
 *
 * A message for all sensors is written as the same bytes to each of their sockets. `ws` would build the header for each
 * one and write it separately from the payload, which took half a second with ten thousand sensors.
 */
export function wireMessage(payload: Uint8Array): Buffer {
  const { length } = payload
  const headLength = length < length16 ? 2 : length < 0x10000 ? 4 : 10
  const message = Buffer.allocUnsafe(headLength + length)
  message[0] = binaryFinal
  if (headLength === 2) {
    message[1] = length
  } else if (headLength === 4) {
    message[1] = length16
    message.writeUInt16BE(length, 2)
  } else {
    message[1] = length64
    message.writeBigUInt64BE(BigInt(length), 2)
  }
  message.set(payload, headLength)
  return message
}
