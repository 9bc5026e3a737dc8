const maxDecimals = 17

/**
 * A double's text as the number that ioredis 6 makes of it. ioredis adds up the decimals one by one, which does not
 * always give the nearest number; a cached reply must not differ from a fresh one in its last digit, so we compute the
 * same sum.
 */
export function ioredisDouble(text: string): number {
  if (text === 'nan') return Number.NaN
  const isNegative = text.startsWith('-')
  const digits = text.replace(/^[+-]/, '')
  if (digits.startsWith('inf')) return isNegative ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY
  const [mantissa = '', exponent] = digits.split(/e/i)
  const [integer = '', decimals = ''] = mantissa.split('.')
  let sum = 0
  for (const digit of integer) sum = sum * 10 + Number(digit)
  for (let index = 0; index < Math.min(decimals.length, maxDecimals); index++) {
    sum += Number(decimals[index]) * Number(`1e-${index + 1}`)
  }
  const signed = isNegative ? -sum : sum
  return exponent === undefined ? signed : signed * 10 ** Number(exponent)
}
