const decoder = new TextDecoder('utf-8', { fatal: true })

/**
 * A key as text that a terminal, JSON or a shell can carry and that `unescapeKey` turns back into the same bytes: valid
 * UTF-8 is kept, control characters and bytes that are not UTF-8 become `\xHH`, and a backslash is doubled.
 */
export function escapeKey(key: Uint8Array): string {
  let isPlain = true
  for (const byte of key) {
    if (byte < 32 || byte > 126 || byte === 92) {
      isPlain = false
      break
    }
  }
  if (isPlain) return Buffer.from(key.buffer, key.byteOffset, key.length).toString('latin1')
  const text = decodeUtf8(key)
  if (text !== undefined) return text.replace(unsafe, (char) => (char === '\\' ? '\\\\' : hexOfText(char)))
  let escaped = ''
  for (const byte of key) {
    if (byte === 92) escaped += '\\\\'
    else if (byte >= 32 && byte < 127) escaped += String.fromCharCode(byte)
    else escaped += hex(byte)
  }
  return escaped
}

/** The bytes of a key written by `escapeKey`. */
export function unescapeKey(text: string): Uint8Array {
  if (!text.includes('\\')) return Buffer.from(text, 'utf8')
  const parts: Buffer[] = []
  const pattern = /\\\\|\\x([0-9a-fA-F]{2})|\\|[^\\]+/g
  for (const [match, code] of text.matchAll(pattern)) {
    if (code !== undefined) parts.push(Buffer.from([Number.parseInt(code, 16)]))
    else parts.push(Buffer.from(match === '\\\\' ? '\\' : match, 'utf8'))
  }
  return Buffer.concat(parts)
}

// Control characters, the backslash, and whatever reverses or hides text in a terminal.
const unsafe = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Co}\p{Cn}\\]/gu

function decodeUtf8(key: Uint8Array): string | undefined {
  try {
    const text = decoder.decode(key)
    // The decoder drops a byte order mark; such a key is escaped byte by byte.
    return key[0] === 0xef && key[1] === 0xbb && key[2] === 0xbf ? undefined : text
  } catch {
    return undefined
  }
}

function hexOfText(text: string): string {
  let escaped = ''
  for (const byte of Buffer.from(text, 'utf8')) escaped += hex(byte)
  return escaped
}

function hex(byte: number): string {
  return `\\x${byte.toString(16).padStart(2, '0')}`
}
