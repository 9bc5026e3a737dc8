import { keyText, readableKey } from '../keys/key-text.ts'
import type { KeyPattern } from './rule.ts'

/** A pattern as shown to users: `product_*`, `*:stock`, `/regex/`. */
export function patternText(pattern: KeyPattern): string {
  switch (pattern.kind) {
    case 'exact':
      return pattern.keys.map(shownKey).join(', ')
    case 'prefix':
      return `${pattern.prefix}*`
    case 'suffix':
      return `*${pattern.suffix}`
    case 'glob':
      return pattern.glob
    case 'regex':
      return `/${pattern.regex}/`
  }
}

/** Bytes that are no text as they are written in addresses; a name of spaces between quotes. */
function shownKey(name: string): string {
  const readable = readableKey(keyText(name))
  return readable.trim() === '' ? `“${readable}”` : readable
}
