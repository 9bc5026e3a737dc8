import { type CodePointSet, complementOf, dotSet, namedSet } from './code-point-set.ts'
import { RegexError } from './regex-error.ts'

/** A parsed expression. */
export type RegexNode =
  | { readonly kind: 'set'; readonly set: CodePointSet }
  | { readonly kind: 'start' }
  | { readonly kind: 'end' }
  | { readonly kind: 'sequence'; readonly parts: readonly RegexNode[] }
  | { readonly kind: 'choice'; readonly options: readonly RegexNode[] }
  | { readonly kind: 'repeat'; readonly node: RegexNode; readonly min: number; readonly max: number }

/** Longer expressions are refused unread: comparing their classes would cost the length squared. */
export const maxRegexLength = 1000
/** The largest n and m of {n,m}, which is expanded. */
export const maxRegexRepeat = 250
const maxDepth = 100
const syntaxCharacters = '^$\\.*+?()[]{}|/'
const controls: Readonly<Record<string, number>> = { t: 9, n: 10, v: 11, f: 12, r: 13, 0: 0 }

/**
 * Parses the regular expressions of rules: the part of JavaScript's syntax (with the `u` flag) that describes regular
 * languages. What needs memory or looks around (backreferences, look-around, word boundaries) is refused by name.
 */
export function parseRegex(text: string): RegexNode {
  const parser = new RegexParser(text)
  return parser.parse()
}

class RegexParser {
  readonly #text: string
  #at = 0
  #depth = 0

  constructor(text: string) {
    this.#text = text
  }

  parse(): RegexNode {
    if (this.#text.length > maxRegexLength) {
      this.#fail(`it has ${this.#text.length} characters; at most ${maxRegexLength} are allowed`, maxRegexLength)
    }
    const node = this.#choice()
    if (this.#at < this.#text.length) this.#fail('")" without "("')
    return node
  }

  #choice(): RegexNode {
    if (++this.#depth > maxDepth) this.#fail(`groups are nested deeper than ${maxDepth}`)
    const options = [this.#sequence()]
    while (this.#take('|')) options.push(this.#sequence())
    this.#depth--
    return options.length === 1 ? options[0]! : { kind: 'choice', options }
  }

  #sequence(): RegexNode {
    const parts: RegexNode[] = []
    while (this.#at < this.#text.length && this.#peek() !== '|' && this.#peek() !== ')') parts.push(this.#term())
    return parts.length === 1 ? parts[0]! : { kind: 'sequence', parts }
  }

  #term(): RegexNode {
    const start = this.#at
    const node = this.#atom()
    const bounds = this.#quantifier()
    if (bounds === undefined) return node
    if ('^$'.includes(this.#text[start]!)) this.#fail('an anchor cannot be repeated', start)
    if (this.#quantifierStands()) this.#fail('two quantifiers in a row')
    return { kind: 'repeat', node, ...bounds }
  }

  #atom(): RegexNode {
    const character = this.#next()
    switch (character) {
      case '^':
        return { kind: 'start' }
      case '$':
        return { kind: 'end' }
      case '.':
        return { kind: 'set', set: dotSet }
      case '(':
        return this.#group()
      case '[':
        return { kind: 'set', set: this.#class() }
      case '\\':
        return { kind: 'set', set: this.#escape(false) }
      case '*':
      case '+':
      case '?':
        return this.#fail(`nothing before "${character}"`, this.#at - 1)
      case '{':
      case '}':
      case ']':
        return this.#fail(`"${character}" has no counterpart; write \\${character}`, this.#at - 1)
      default:
        return { kind: 'set', set: single(character.codePointAt(0)!) }
    }
  }

  #group(): RegexNode {
    const start = this.#at - 1
    if (this.#take('?')) {
      if (this.#take(':')) {
        // A group without a number; numbers mean nothing here anyway.
      } else if (this.#take('=') || this.#take('!') || this.#take('<=') || this.#take('<!')) {
        this.#fail('look-ahead and look-behind are not supported: their time is not bounded', start)
      } else {
        const name = this.#text.slice(this.#at).match(/^<[A-Za-z_$][\w$]*>/)?.[0]
        if (name === undefined) this.#fail('"(?" must be followed by ":" or a name', start)
        this.#at += name.length
      }
    }
    const node = this.#choice()
    if (!this.#take(')')) this.#fail('"(" without ")"', start)
    return node
  }

  #quantifierStands(): boolean {
    const character = this.#peek()
    return character === '*' || character === '+' || character === '?' || character === '{'
  }

  #quantifier(): { min: number; max: number } | undefined {
    const start = this.#at
    let bounds: { min: number; max: number }
    if (this.#take('*')) bounds = { min: 0, max: Number.POSITIVE_INFINITY }
    else if (this.#take('+')) bounds = { min: 1, max: Number.POSITIVE_INFINITY }
    else if (this.#take('?')) bounds = { min: 0, max: 1 }
    else if (this.#peek() === '{') {
      const match = this.#text.slice(this.#at).match(/^\{(\d+)(?:(,)(\d*))?\}/)
      if (match === null) this.#fail('"{" must begin {n}, {n,} or {n,m}; write \\{ for the character', start)
      this.#at += match[0].length
      const min = Number(match[1])
      const max = match[2] === undefined ? min : match[3] === '' ? Number.POSITIVE_INFINITY : Number(match[3])
      if (max < min) this.#fail(`{${min},${max}} has its numbers in the wrong order`, start)
      if (min > maxRegexRepeat || (max > maxRegexRepeat && max !== Number.POSITIVE_INFINITY)) {
        this.#fail(`a repetition may be at most ${maxRegexRepeat}`, start)
      }
      bounds = { min, max }
    } else return undefined
    // Lazy or greedy: whether it matches is the same.
    this.#take('?')
    return bounds
  }

  /** A character class after its "[". */
  #class(): CodePointSet {
    const start = this.#at - 1
    const isNegated = this.#take('^')
    const ranges: (readonly [number, number])[] = []
    for (;;) {
      if (this.#at >= this.#text.length) this.#fail('"[" without "]"', start)
      if (this.#take(']')) break
      const from = this.#classItem()
      if (this.#peek() !== '-' || this.#text[this.#at + 1] === ']' || this.#at + 1 >= this.#text.length) {
        ranges.push(...from)
        continue
      }
      this.#at++
      const to = this.#classItem()
      const low = onlyOf(from)
      const high = onlyOf(to)
      if (low === undefined || high === undefined) this.#fail('a range must go from one character to another')
      if (low > high) this.#fail('a range has its ends in the wrong order')
      ranges.push([low, high])
    }
    return isNegated ? complementOf(ranges) : ranges
  }

  #classItem(): CodePointSet {
    const character = this.#next()
    return character === '\\' ? this.#escape(true) : single(character.codePointAt(0)!)
  }

  /** Interprets an escape; the backslash has been read. */
  #escape(isInClass: boolean): CodePointSet {
    const start = this.#at - 1
    if (this.#at >= this.#text.length) this.#fail('"\\" is the last character', start)
    const character = this.#next()
    const named = namedSet(character)
    if (named !== undefined) return named
    if (character === '0' && /\d/.test(this.#peek() ?? '')) this.#fail('octal escapes are not supported', start)
    const control = controls[character]
    if (control !== undefined) return single(control)
    if (/[1-9]/.test(character) || character === 'k') {
      this.#fail('backreferences are not supported: their time is not bounded', start)
    }
    if (character === 'b' && isInClass) return single(8)
    if (character === 'b' || character === 'B') this.#fail(`\\${character} (word boundary) is not supported`, start)
    if (character === 'p' || character === 'P') this.#fail(`\\${character} (Unicode property) is not supported`, start)
    if (character === 'x' || character === 'u') return single(this.#hex(character, start))
    if (syntaxCharacters.includes(character) || (isInClass && character === '-'))
      return single(character.codePointAt(0)!)
    return this.#fail(`\\${character} means nothing; write ${character} without the backslash`, start)
  }

  #hex(kind: string, start: number): number {
    const pattern = kind === 'x' ? /^([0-9a-fA-F]{2})/ : /^(?:([0-9a-fA-F]{4})|\{([0-9a-fA-F]{1,6})\})/
    const match = this.#text.slice(this.#at).match(pattern)
    const code = match === null ? Number.NaN : Number.parseInt(match[1] ?? match[2]!, 16)
    if (!(code <= 0x10ffff)) this.#fail(`\\${kind} must be followed by hex digits of a character`, start)
    this.#at += match![0].length
    // Two escaped halves of a surrogate pair are one character.
    const low = this.#text.slice(this.#at).match(/^\\u([dD][c-fC-F][0-9a-fA-F]{2})/)
    if (kind === 'u' && match![1] !== undefined && code >= 0xd800 && code <= 0xdbff && low !== null) {
      this.#at += low[0].length
      return 0x10000 + (code - 0xd800) * 0x400 + (Number.parseInt(low[1]!, 16) - 0xdc00)
    }
    return code
  }

  #peek(): string | undefined {
    return this.#text[this.#at]
  }

  #next(): string {
    const character = String.fromCodePoint(this.#text.codePointAt(this.#at)!)
    this.#at += character.length
    return character
  }

  #take(expected: string): boolean {
    if (!this.#text.startsWith(expected, this.#at)) return false
    this.#at += expected.length
    return true
  }

  #fail(reason: string, at = this.#at): never {
    throw new RegexError(this.#text, at, reason)
  }
}

function single(codePoint: number): CodePointSet {
  return [[codePoint, codePoint]]
}

function onlyOf(set: CodePointSet): number | undefined {
  const [first, second] = set
  return second === undefined && first !== undefined && first[0] === first[1] ? first[0] : undefined
}
