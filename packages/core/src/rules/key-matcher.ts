import { compileLinearRegex } from './linear-regex.ts'
import type { KeyPattern } from './rule.ts'

/** Tells whether a key's name matches a pattern. */
export type KeyMatcher = (name: string) => boolean

/** Compiles a pattern. */
export function compilePattern(pattern: KeyPattern): KeyMatcher {
  switch (pattern.kind) {
    case 'exact': {
      const keys = new Set(pattern.keys)
      return (name) => keys.has(name)
    }
    case 'prefix':
      return (name) => name.startsWith(pattern.prefix)
    case 'suffix':
      return (name) => name.endsWith(pattern.suffix)
    case 'glob':
      return compileGlob(pattern.glob)
    case 'regex':
      return compileLinearRegex(pattern.regex)
  }
}

/**
 * Redis' own glob: `*`, `?`, `[a-c]`, `[^x]`, backslash. Matching only ever backtracks to the last `*`, so it costs at
 * most name × pattern, whatever the pattern.
 */
function compileGlob(glob: string): KeyMatcher {
  const tokens = parseGlob(glob)
  const last = tokens.length - 1
  return (name) => {
    let token = 0
    let at = 0
    let starToken = -1
    let starAt = 0
    while (at < name.length) {
      const current = tokens[token]
      if (current === 'star') {
        // Whatever follows: a long name costs no more than a short one.
        if (token === last) return true
        starToken = token++
        starAt = at
      } else if (current?.(name[at]!)) {
        token++
        at++
      } else if (starToken >= 0) {
        token = starToken + 1
        at = ++starAt
      } else {
        return false
      }
    }
    while (tokens[token] === 'star') token++
    return token === tokens.length
  }
}

type GlobToken = 'star' | ((character: string) => boolean)

function parseGlob(glob: string): GlobToken[] {
  const tokens: GlobToken[] = []
  for (let index = 0; index < glob.length; index++) {
    const character = glob[index]!
    if (character === '*') {
      if (tokens.at(-1) !== 'star') tokens.push('star')
    } else if (character === '?') {
      tokens.push(() => true)
    } else if (character === '[') {
      const end = classEnd(glob, index)
      tokens.push(parseClass(glob.slice(index + 1, end)))
      index = end
    } else {
      const literal = character === '\\' && index + 1 < glob.length ? glob[++index]! : character
      tokens.push((given) => given === literal)
    }
  }
  return tokens
}

function classEnd(glob: string, start: number): number {
  for (let index = start + 1; index < glob.length; index++) {
    if (glob[index] === '\\') index++
    else if (glob[index] === ']') return index
  }
  return glob.length
}

function parseClass(text: string): (character: string) => boolean {
  const isNegated = text.startsWith('^')
  const ranges: [string, string][] = []
  for (let index = isNegated ? 1 : 0; index < text.length; index++) {
    if (text[index] === '\\' && index + 1 < text.length) index++
    const from = text[index]!
    if (text[index + 1] === '-' && index + 2 < text.length) {
      const to = text[index + 2]!
      ranges.push(from < to ? [from, to] : [to, from])
      index += 2
    } else {
      ranges.push([from, from])
    }
  }
  return (character) => ranges.some(([from, to]) => character >= from && character <= to) !== isNegated
}
