import { isIPv4 } from 'node:net'
import { type IpRange, parseIpAgain, parseIpRange } from './ip-range.ts'
import { IpRanges } from './ip-ranges.ts'

/** What one parameter of a call must be for a rule to apply; a call without the parameter never fits. */
export type Condition =
  | { readonly key: string; readonly op: 'any'; readonly together: boolean }
  | { readonly key: string; readonly op: 'is' | 'not'; readonly values: readonly string[]; readonly together: boolean }
  | { readonly key: string; readonly op: 'below' | 'above'; readonly bound: number; readonly together: boolean }
  | { readonly key: string; readonly op: 'in' | 'notIn'; readonly dict: string; readonly together: boolean }

/** Tests a value that is not empty. */
export type Matcher = (value: string) => boolean

/** Parses one condition of a policy file: `k=a,b{~}`, `k!=a`, `k=+`, `k<n`, `k>n`, `k @ dict`, `k !@ dict`; throws a sentence. */
export function parseCondition(text: string): Condition {
  const dict = /^([^\s@!=<>]+)\s*(!?)@\s*(\S+)$/.exec(text)
  if (dict !== null) return { key: dict[1]!, op: dict[2] === '!' ? 'notIn' : 'in', dict: dict[3]!, together: false }
  const match = /^([^\s@!=<>]+)\s*(!=|=|<|>)\s*(.*)$/.exec(text)
  if (match === null) {
    throw new Error(`"${text}" is not a condition; write k=a,b, k!=a, k=+, k<n, k>n, k @ dict or k !@ dict`)
  }
  const key = match[1]!
  const op = match[2]!
  const together = /\{~\}\s*$/.test(match[3]!)
  const value = match[3]!.replace(/\{~\}\s*$/, '').trim()
  if (op === '<' || op === '>') {
    const bound = Number(value)
    if (!/^[-+]?\d+$/.test(value) || !Number.isSafeInteger(bound)) {
      throw new Error(`"${text}": ${value || 'nothing'} is not a whole number within ±2^53`)
    }
    return { key, op: op === '<' ? 'below' : 'above', bound, together }
  }
  // `k!=+` is Koala's other way to say the same: k is given.
  if (value === '+') return { key, op: 'any', together }
  const values = value.split(',').map((part) => part.trim())
  if (values.some((part) => part === '')) throw new Error(`"${text}" has an empty value`)
  return { key, op: op === '=' ? 'is' : 'not', values, together }
}

/** Writes a condition in the form of a policy file. */
export function writeCondition(condition: Condition): string {
  const { key, op } = condition
  const tail = condition.together ? '{~}' : ''
  switch (op) {
    case 'any':
      return `${key}=+${tail}`
    case 'is':
      return `${key}=${condition.values.join(',')}${tail}`
    case 'not':
      return `${key}!=${condition.values.join(',')}${tail}`
    case 'below':
      return `${key}<${condition.bound}${tail}`
    case 'above':
      return `${key}>${condition.bound}${tail}`
    case 'in':
      return `${key} @ ${condition.dict}`
    case 'notIn':
      return `${key} !@ ${condition.dict}`
  }
}

/** Compiles a condition; `dicts` must contain the one it names. */
export function compileCondition(condition: Condition, dicts: ReadonlyMap<string, Matcher>): Matcher {
  switch (condition.op) {
    case 'any':
      return () => true
    case 'is':
      return compileValues(condition.values)
    case 'not': {
      const isOne = compileValues(condition.values)
      const isComparable = comparableWith(condition.values)
      return (value) => isComparable(value) && !isOne(value)
    }
    case 'below':
      return (value) => /^-?\d+$/.test(value) && Number(value) < condition.bound
    case 'above':
      return (value) => /^-?\d+$/.test(value) && Number(value) > condition.bound
    case 'in':
      return dicts.get(condition.dict)!
    case 'notIn': {
      const isIn = dicts.get(condition.dict)!
      return (value) => !isIn(value)
    }
  }
}

/**
 * Whether a value can be compared at all: if only ranges are given, text is neither inside nor outside them, as in
 * Koala.
 */
function comparableWith(values: readonly string[]): Matcher {
  const kinds = new Set(values.map((value) => parseValue(value).kind))
  if (kinds.has('text') || kinds.has('address')) return () => true
  return (value) =>
    (kinds.has('numbers') && /^-?\d+$/.test(value)) || (kinds.has('addresses') && parseIpAgain(value) !== undefined)
}

/** What a value of a condition or a dict means; a single IPv4 address also matches as text. */
type Value =
  | { readonly kind: 'text' }
  | { readonly kind: 'numbers'; readonly low: number; readonly high: number }
  | { readonly kind: 'address' | 'addresses'; readonly range: IpRange }

/** Parses a value; throws a message if it is a malformed range, mask or address. */
export function parseValue(text: string): Value {
  const range = parseIpRange(text)
  if (range !== undefined) return { kind: isIPv4(text) ? 'address' : 'addresses', range }
  const numbers = /^(-?\d+)\s*-\s*(-?\d+)?$/.exec(text)
  if (numbers === null) return { kind: 'text' }
  if (numbers[2] === undefined) throw new Error(`"${text}" has no end; a range is 1-100`)
  const [low, high] = [Number(numbers[1]), Number(numbers[2])]
  if (!Number.isSafeInteger(low) || !Number.isSafeInteger(high)) {
    throw new Error(`"${text}": the ends of a range must be whole numbers within ±2^53`)
  }
  if (low > high) throw new Error(`"${text}" ends before it begins; the lower number comes first`)
  return { kind: 'numbers', low, high }
}

/** A test for any of the values: literals, whole-number ranges `1-100`, and addresses in all their forms. */
export function compileValues(values: Iterable<string>): Matcher {
  const literals = new Set<string>()
  const numbers: { low: number; high: number }[] = []
  const addresses: IpRange[] = []
  // If all are single IPv4 addresses, only a mapped one can be another spelling of them.
  let needsColon = true
  for (const text of values) {
    const value = parseValue(text)
    if (value.kind === 'text' || value.kind === 'address') literals.add(text)
    if (value.kind === 'numbers') numbers.push(value)
    else if (value.kind !== 'text') addresses.push(value.range)
    needsColon &&= value.kind !== 'addresses'
  }
  if (numbers.length === 0 && addresses.length === 0) return (value) => literals.has(value)
  const ranges = new IpRanges(addresses)
  return (value) => {
    if (literals.has(value)) return true
    if (numbers.length > 0 && /^-?\d+$/.test(value)) {
      const number = Number(value)
      if (numbers.some(({ low, high }) => number >= low && number <= high)) return true
    }
    if (addresses.length === 0 || (needsColon && !value.includes(':'))) return false
    const ip = parseIpAgain(value)
    return ip !== undefined && ranges.has(ip)
  }
}
