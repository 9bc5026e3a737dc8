import type { KeyPattern } from './rule.ts'

/** A pattern as shown to users: `product_*`, `*:stock`, `/regex/`. */
export function patternText(pattern: KeyPattern): string {
  switch (pattern.kind) {
    case 'exact':
      return pattern.keys.join(', ')
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
