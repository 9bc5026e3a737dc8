import { Crc64 } from '../rdb/crc64.ts'

/** Writes dumps by hand, for the encodings that no server here writes any more, or yet. */
export class RdbBuilder {
  readonly #parts: Buffer[] = []
  readonly #version: number

  constructor(version: number, magic: 'REDIS' | 'VALKEY' = 'REDIS') {
    this.#version = version
    this.raw(`${magic}${String(version).padStart(magic === 'REDIS' ? 4 : 3, '0')}`)
  }

  raw(part: Buffer | string | readonly number[]): this {
    this.#parts.push(typeof part === 'string' ? Buffer.from(part, 'latin1') : Buffer.from(part as Buffer))
    return this
  }

  key(type: number, key: string, ...value: (Buffer | readonly number[])[]): this {
    this.raw([type]).raw(text(key))
    for (const part of value) this.raw(part)
    return this
  }

  /** The whole dump with end mark and checksum. */
  build(options: { checksum?: boolean } = {}): Buffer {
    const body = Buffer.concat([...this.#parts, Buffer.from([255])])
    if (this.#version < 5) return body
    const end = Buffer.alloc(8)
    if (options.checksum !== false) {
      const crc = new Crc64()
      crc.update(body, 0, body.length)
      end.writeBigUInt64LE(crc.value)
    }
    return Buffer.concat([body, end])
  }
}

/** A length as a dump writes it. */
export function length(value: number): Buffer {
  if (value < 64) return Buffer.from([value])
  if (value < 16384) return Buffer.from([0x40 | (value >> 8), value & 0xff])
  const bytes = Buffer.alloc(5)
  bytes[0] = 0x80
  bytes.writeUInt32BE(value, 1)
  return bytes
}

/** A length of 64 bits. */
export function longLength(value: bigint): Buffer {
  const bytes = Buffer.alloc(9)
  bytes[0] = 0x81
  bytes.writeBigUInt64BE(value, 1)
  return bytes
}

/** A string as a dump writes it, without compression. */
export function text(value: string | Buffer): Buffer {
  const bytes = typeof value === 'string' ? Buffer.from(value) : value
  return Buffer.concat([length(bytes.length), bytes])
}

/** A ziplist of short strings. */
export function ziplist(entries: readonly string[]): Buffer {
  const parts: Buffer[] = []
  let previous = 0
  let tail = 10
  let at = 10
  for (const entry of entries) {
    const bytes = Buffer.from(entry)
    const head = bytes.length < 64 ? [bytes.length] : [0x40 | (bytes.length >> 8), bytes.length & 0xff]
    const before = previous < 254 ? [previous] : [254, previous & 0xff, previous >> 8, 0, 0]
    const part = Buffer.concat([Buffer.from(before), Buffer.from(head), bytes])
    tail = at
    at += part.length
    previous = part.length
    parts.push(part)
  }
  const header = Buffer.alloc(10)
  header.writeUInt32LE(at + 1, 0)
  header.writeUInt32LE(tail, 4)
  header.writeUInt16LE(Math.min(entries.length, 65535), 8)
  return Buffer.concat([header, ...parts, Buffer.from([255])])
}

/** A listpack of short strings, and of numbers as 64-bit integers. */
export function listpack(entries: readonly (string | bigint)[]): Buffer {
  const parts: Buffer[] = []
  let size = 7
  for (const entry of entries) {
    let body: Buffer
    if (typeof entry === 'bigint') {
      body = entry === 0n ? Buffer.from([0]) : Buffer.alloc(9)
      if (entry !== 0n) {
        body[0] = 0xf4
        body.writeBigInt64LE(entry, 1)
      }
    } else {
      const bytes = Buffer.from(entry)
      const head = bytes.length < 64 ? [0x80 | bytes.length] : [0xe0 | (bytes.length >> 8), bytes.length & 0xff]
      body = Buffer.concat([Buffer.from(head), bytes])
    }
    const back = body.length < 128 ? [body.length] : [body.length >> 7, (body.length & 127) | 128]
    const part = Buffer.concat([body, Buffer.from(back)])
    size += part.length
    parts.push(part)
  }
  const header = Buffer.alloc(6)
  header.writeUInt32LE(size, 0)
  header.writeUInt16LE(Math.min(entries.length, 65535), 4)
  return Buffer.concat([header, ...parts, Buffer.from([255])])
}

/** A zipmap, the small hash of Redis 2.4 and before. */
export function zipmap(pairs: readonly (readonly [string, string])[]): Buffer {
  const parts = pairs.flatMap(([field, value]) => [
    Buffer.from([field.length]),
    Buffer.from(field),
    Buffer.from([value.length, 0]),
    Buffer.from(value),
  ])
  return Buffer.concat([Buffer.from([Math.min(pairs.length, 254)]), ...parts, Buffer.from([255])])
}
