import { InvalidOptionError } from '@firebreak/core'

/** The longest delay of a Node timer. */
const longest = 2 ** 31 - 1

/** Throws unless an option is a number above 0 that a timer can wait for. */
export function requireAbove0(option: string, value: number): number {
  if (typeof value === 'number' && value > 0 && value <= longest) return value
  throw new InvalidOptionError(option, value, `a number above 0, at most ${longest}`)
}
