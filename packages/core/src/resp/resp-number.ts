import { textOf } from './text.ts'

/** Means "no number" where numbers are read without creating a string. */
export const notANumber: number = Number.NaN

/**
 * The whole number in the bytes from `start` to `end`, with an optional sign; NaN if they are not one. Not exact beyond
 * 2^53: see `integerOf`.
 */
export function wholeNumberOf(bytes: Uint8Array, start: number, end: number): number {
  let index = start
  const sign = bytes[index]
  if (sign === 0x2d || sign === 0x2b) index++
  if (index >= end) return notANumber
  let value = 0
  for (; index < end; index++) {
    const digit = bytes[index]! - 0x30
    if (digit < 0 || digit > 9) return notANumber
    value = value * 10 + digit
  }
  return sign === 0x2d ? -value : value
}

/** Like `wholeNumberOf`, but exact: a bigint if a number would not be. */
export function integerOf(bytes: Uint8Array, start: number, end: number): number | bigint {
  const value = wholeNumberOf(bytes, start, end)
  if (Number.isSafeInteger(value)) return value === 0 ? 0 : value
  return Number.isNaN(value) ? value : bigIntegerOf(bytes, start, end)!
}

/** The whole number of any size, or undefined. */
export function bigIntegerOf(bytes: Uint8Array, start: number, end: number): bigint | undefined {
  const text = textOf(bytes, start, end)
  if (!/^[+-]?\d+$/.test(text)) return undefined
  return BigInt(text.startsWith('+') ? text.slice(1) : text)
}

/** The double of RESP3 (`inf`, `-inf` and `nan` included), or undefined. */
export function doubleOf(bytes: Uint8Array, start: number, end: number): number | undefined {
  const text = textOf(bytes, start, end)
  if (/^[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?$/.test(text)) return Number(text)
  switch (text.toLowerCase()) {
    case 'inf':
    case '+inf':
      return Number.POSITIVE_INFINITY
    case '-inf':
      return Number.NEGATIVE_INFINITY
    // C libraries print the sign bit of a NaN.
    case 'nan':
    case '-nan':
      return Number.NaN
    default:
      return undefined
  }
}

/**
 * A length or count in a request, parsed as strictly as Redis does: no plus, no leading zero, within 64 bits; NaN if it
 * is invalid.
 */
export function strictWholeNumberOf(bytes: Uint8Array, start: number, end: number): number {
  const isNegative = bytes[start] === 0x2d
  const from = isNegative ? start + 1 : start
  const first = bytes[from]
  if (from >= end || end - from > 19 || first === 0x2b || first === 0x2d) return notANumber
  if (first === 0x30 && (isNegative || end - from > 1)) return notANumber
  return wholeNumberOf(bytes, start, end)
}
