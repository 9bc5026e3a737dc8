import { keyName, keyText } from '@firebreak/core'

const encoder = new TextEncoder()

/**
 * The text of a key as a search writes it: control characters and bytes that are no UTF-8 are `\xHH`, a backslash is doubled
 * (`escapeKey` of the room `find`).
 */
export function foundKeyText(found: string): string {
  if (!found.includes('\\')) return keyText(found)
  const bytes: number[] = []
  for (const [part, code] of found.matchAll(/\\\\|\\x([0-9a-fA-F]{2})|\\|[^\\]+/g)) {
    if (code === undefined) bytes.push(...encoder.encode(part === '\\\\' ? '\\' : part))
    else bytes.push(Number.parseInt(code, 16))
  }
  return keyText(keyName(Uint8Array.from(bytes)))
}

/** The key as an argument of `redis-cli`, which reads the same escapes between quotes. Whole, however long: it is run. */
export function cliKey(found: string): string {
  return `"${found.replaceAll('"', '\\"')}"`
}
