import { keyBytes, keyName } from '../keys/key-text.ts'

/**
 * The name of a key's nth copy, from a template. Works on bytes, because the name of a key that is not text cannot be
 * part of another name.
 */
export function copyName(template: string, key: string, n: number): string {
  const encoder = new TextEncoder()
  const pieces = template
    .replaceAll('{n}', String(n))
    .split('{key}')
    .map((piece) => encoder.encode(piece))
  const own = keyBytes(key)
  const all = pieces.flatMap((piece, index) => (index === 0 ? [piece] : [own, piece]))
  const bytes = new Uint8Array(all.reduce((sum, { length }) => sum + length, 0))
  let at = 0
  for (const piece of all) {
    bytes.set(piece, at)
    at += piece.length
  }
  return keyName(bytes)
}

/** The most copies that a key gets, however many nodes there are. */
export const maxCopies = 1024

/**
 * A name for use in a copy's name: braces become parentheses, because a hash tag would keep all copies on the key's own
 * node.
 */
export function untagged(name: string): string {
  return name.replaceAll('{', '(').replaceAll('}', ')')
}

/** True for a name that `placeCopies` may have derived from one of these: the same, or with a number appended. */
export function isPlacedName(name: string, copies: ReadonlySet<string>): boolean {
  return copies.has(name) || copies.has(name.replace(/~\d{1,3}$/, ''))
}
