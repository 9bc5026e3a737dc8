/**
 * Two written forms of a key.
 *
 * Keys are bytes. In memory we want them as JS strings (map look-ups are far faster), on the wire as plain ASCII:
 *
 * - the *name* of a key: the string itself if the bytes are valid UTF-8 (so a client's string argument is its own name,
 *   at no cost), otherwise U+0000 `b` followed by the bytes as Latin-1. Different byte keys have different names,
 *   except a valid UTF-8 key that begins with exactly that mark, which is escaped the same way.
 * - the *text* of a key: its bytes, percent-encoded where they are `% , : #` or not printable ASCII. Used in reports,
 *   tables and URLs.
 */
const binaryMark = '\u0000b'
const strictDecoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const encoder = new TextEncoder()

/** The name of a key passed to a client. */
export function keyName(key: string | Uint8Array): string {
  if (typeof key === 'string') return key.startsWith(binaryMark) ? binaryMark + latin1(encoder.encode(key)) : key
  for (let index = 0; index < key.length; index++) {
    if (key[index]! > 0x7f) return nameOfNonAscii(key)
  }
  const name = latin1(key)
  return name.startsWith(binaryMark) ? binaryMark + name : name
}

function nameOfNonAscii(bytes: Uint8Array): string {
  try {
    const text = strictDecoder.decode(bytes)
    return text.startsWith(binaryMark) ? binaryMark + latin1(bytes) : text
  } catch {
    return binaryMark + latin1(bytes)
  }
}

/** The bytes of a key from its name. */
export function keyBytes(name: string): Uint8Array {
  if (!name.startsWith(binaryMark)) return encoder.encode(name)
  const bytes = new Uint8Array(name.length - binaryMark.length)
  for (let index = 0; index < bytes.length; index++) bytes[index] = name.charCodeAt(index + binaryMark.length)
  return bytes
}

const plainName = /^[!"$&-+\--9;-~]*$/

/** The text of a key from its name. */
export function keyText(name: string): string {
  // Space is printable, but line-based formats trim it, so it is escaped too, as are the four characters with a meaning
  // in the format.
  if (plainName.test(name)) return name
  let text = ''
  for (const byte of keyBytes(name)) {
    const character = String.fromCharCode(byte)
    text += plainName.test(character) ? character : `%${byte.toString(16).toUpperCase().padStart(2, '0')}`
  }
  return text
}

/** The name of a key from its text; undefined if a `%` is not followed by two hex digits. */
export function parseKeyText(text: string): string | undefined {
  if (!text.includes('%')) return keyName(encoder.encode(text))
  const bytes: number[] = []
  for (let index = 0; index < text.length; index++) {
    if (text[index] !== '%') {
      bytes.push(...encoder.encode(text[index]!))
      continue
    }
    const hex = text.slice(index + 1, index + 3)
    if (!/^[0-9a-fA-F]{2}$/.test(hex)) return undefined
    bytes.push(Number.parseInt(hex, 16))
    index += 2
  }
  return keyName(Uint8Array.from(bytes))
}

function latin1(bytes: Uint8Array): string {
  let text = ''
  for (let index = 0; index < bytes.length; index += 8192) {
    text += String.fromCharCode(...bytes.subarray(index, index + 8192))
  }
  return text
}

/**
 * A key's text for display: escapes of printable characters are decoded, so that `user%3A1` reads `user:1`; bytes that
 * cannot be shown stay escaped.
 */
export function readableKey(text: string): string {
  const name = parseKeyText(text)
  if (name === undefined || name.startsWith(binaryMark)) return text
  return name.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu, (character) => keyText(character))
}
