/** The text of a bulk string reply, or null; undefined if it is neither. */
export function textOfBulk(bytes: Uint8Array): string | null | undefined {
  const body = bulkBody(bytes)
  return body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('utf8') : body
}

/** A new Buffer of a bulk string reply, or null; undefined if it is neither. */
export function bufferOfBulk(bytes: Uint8Array): Buffer | null | undefined {
  const body = bulkBody(bytes)
  return body instanceof Uint8Array ? Buffer.from(body) : body
}

function bulkBody(bytes: Uint8Array): Uint8Array | null | undefined {
  if (bytes[0] === 0x5f || (bytes[0] === 0x24 && bytes[1] === 0x2d)) return null
  if (bytes[0] !== 0x24) return undefined
  return bytes.subarray(bytes.indexOf(10) + 1, bytes.length - 2)
}
