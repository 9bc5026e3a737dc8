import { describeValue, InvalidOptionError } from '@firebreak/core'

/**
 * A rate as a fraction of whole numbers in lowest terms: 0.5 per 1000 ms is 1 per 2000 ms. Decimals of up to six places
 * are exact; a third is not one, so it is written as 1 per 3000 ms.
 */
export function wholeRatio(option: string, amount: number, perMs: number): { amount: number; perMs: number } {
  const [top, topPlaces] = wholeDecimal(option, amount)
  const [bottom, bottomPlaces] = wholeDecimal('perMs', perMs)
  const places = Math.max(topPlaces, bottomPlaces)
  const scaledTop = top * 10 ** (places - topPlaces)
  const scaledBottom = bottom * 10 ** (places - bottomPlaces)
  const divisor = greatestCommonDivisor(scaledTop, scaledBottom)
  return { amount: scaledTop / divisor, perMs: scaledBottom / divisor }
}

/** A positive decimal as a whole number, and how many places its point moved. */
function wholeDecimal(option: string, value: number): [whole: number, places: number] {
  if (typeof value === 'number' && value > 0 && Number.isFinite(value)) {
    for (let places = 0; places <= 6; places++) {
      const whole = Math.round(value * 10 ** places)
      if (whole / 10 ** places === value && Number.isSafeInteger(whole)) return [whole, places]
    }
  }
  throw new InvalidOptionError(
    option,
    value,
    'above 0 with at most six decimals; write a rate like 1/3 per second as 1 per 3000 ms',
  )
}

function greatestCommonDivisor(a: number, b: number): number {
  return b === 0 ? a : greatestCommonDivisor(b, a % b)
}

/** Throws unless `value` is a whole number from `least` to `most`. */
export function requireWhole(option: string, value: number, least: number, most: number = largestExact): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw new InvalidOptionError(option, value, `a whole number from ${least} to ${describeValue(most)}`)
  }
}

/** Products of a limit and its time stay below this, so that the sum of any two is an exact double. */
export const largestExact: number = 2 ** 52
