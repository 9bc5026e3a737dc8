/**
 * Walks the packed containers of Redis (listpack, ziplist, intset, zipmap) without extracting values.
 *
 * Each begins with its own count, which is usually all that is needed; a walk is only needed if the count field is full
 * (65,535 for listpack and ziplist, 254 for zipmap) or the question is about single entries. Every walk returns
 * undefined as soon as an entry does not fit in its container, so that a damaged dump is recognised.
 */
export type Container = 'listpack' | 'ziplist' | 'intset' | 'zipmap'

/** Bytes at the start of a container that hold its count. */
export const headerBytes: Readonly<Record<Container, number>> = { listpack: 6, ziplist: 10, intset: 8, zipmap: 1 }

/** The number of entries in the container's own header; undefined if it does not say. */
export function headerCount(container: Container, head: Uint8Array): number | undefined {
  switch (container) {
    case 'listpack':
      return full(head[4]! | (head[5]! << 8))
    case 'ziplist':
      return full(head[8]! | (head[9]! << 8))
    case 'intset':
      return (head[4]! | (head[5]! << 8) | (head[6]! << 16) | (head[7]! << 24)) >>> 0
    case 'zipmap':
      return head[0]! < 254 ? head[0]! * 2 : undefined
  }
}

function full(count: number): number | undefined {
  return count === 65535 ? undefined : count
}

/** The number of entries, counted by walking; undefined if the container is damaged. */
export function walkCount(container: Container, bytes: Uint8Array): number | undefined {
  switch (container) {
    case 'listpack':
      return walkListpack(bytes)
    case 'ziplist':
      return walkZiplist(bytes)
    case 'intset':
      return headerCount(container, bytes)
    case 'zipmap':
      return walkZipmap(bytes)
  }
}

/** Walks a listpack; `visit` gets each entry's position and, for an integer, whether it is zero. */
export function walkListpack(bytes: Uint8Array, visit?: (index: number, isZero: boolean) => void): number | undefined {
  let at = 6
  for (let count = 0; ; count++) {
    if (at >= bytes.length) return undefined
    const first = bytes[at]!
    if (first === 0xff) return at === bytes.length - 1 ? count : undefined
    let size: number
    if (first < 0x80) size = 1
    else if (first < 0xc0) size = 1 + (first & 0x3f)
    else if (first < 0xe0) size = 2
    else if (first < 0xf0) size = 2 + (((first & 0x0f) << 8) | (bytes[at + 1] ?? 0))
    else if (first === 0xf0) size = 5 + littleEndian32(bytes, at + 1)
    else if (first <= 0xf3) size = first - 0xf1 + 3
    else if (first === 0xf4) size = 9
    else return undefined
    if (visit !== undefined) visit(count, first === 0)
    at += size + (size < 128 ? 1 : size < 16384 ? 2 : size < 2097152 ? 3 : size < 268435456 ? 4 : 5)
  }
}

function walkZiplist(bytes: Uint8Array): number | undefined {
  let at = 10
  for (let count = 0; ; count++) {
    if (at >= bytes.length) return undefined
    if (bytes[at] === 0xff) return at === bytes.length - 1 ? count : undefined
    at += bytes[at] === 0xfe ? 5 : 1
    const first = bytes[at]
    if (first === undefined) return undefined
    if (first < 0x40) at += 1 + first
    else if (first < 0x80) at += 2 + (((first & 0x3f) << 8) | (bytes[at + 1] ?? 0))
    else if (first < 0xc0) at += 5 + bigEndian32(bytes, at + 1)
    else if (first === 0xc0) at += 3
    else if (first === 0xd0) at += 5
    else if (first === 0xe0) at += 9
    else if (first === 0xf0) at += 4
    else if (first === 0xfe) at += 2
    else if (first > 0xf0 && first < 0xfe) at += 1
    else return undefined
  }
}

function walkZipmap(bytes: Uint8Array): number | undefined {
  let at = 1
  for (let count = 0; ; count++) {
    if (at >= bytes.length) return undefined
    if (bytes[at] === 0xff) return at === bytes.length - 1 ? count : undefined
    const isLong = bytes[at] === 0xfe
    const length = isLong ? littleEndian32(bytes, at + 1) : bytes[at]!
    at += (isLong ? 5 : 1) + length
    // A value is followed by spare room, whose size precedes it.
    if (count % 2 === 1) at += 1 + (bytes[at - length] ?? 0)
  }
}

function littleEndian32(bytes: Uint8Array, at: number): number {
  return (
    ((bytes[at] ?? 0) | ((bytes[at + 1] ?? 0) << 8) | ((bytes[at + 2] ?? 0) << 16) | ((bytes[at + 3] ?? 0) << 24)) >>> 0
  )
}

function bigEndian32(bytes: Uint8Array, at: number): number {
  return (
    (((bytes[at] ?? 0) << 24) | ((bytes[at + 1] ?? 0) << 16) | ((bytes[at + 2] ?? 0) << 8) | (bytes[at + 3] ?? 0)) >>> 0
  )
}
