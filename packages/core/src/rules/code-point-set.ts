/** A set of Unicode code points as inclusive ranges, in any order, possibly overlapping. */
export type CodePointSet = readonly (readonly [number, number])[]

export const maxCodePoint = 0x10ffff

/** Everything that is not in the set. */
export function complementOf(set: CodePointSet): CodePointSet {
  const sorted = set.toSorted((a, b) => a[0] - b[0])
  const rest: [number, number][] = []
  let next = 0
  for (const [from, to] of sorted) {
    if (from > next) rest.push([next, from - 1])
    next = Math.max(next, to + 1)
  }
  if (next <= maxCodePoint) rest.push([next, maxCodePoint])
  return rest
}

const digit: CodePointSet = [[0x30, 0x39]]
const word: CodePointSet = [
  [0x30, 0x39],
  [0x41, 0x5a],
  [0x5f, 0x5f],
  [0x61, 0x7a],
]
const space: CodePointSet = [
  [0x09, 0x0d],
  [0x20, 0x20],
  [0xa0, 0xa0],
  [0x1680, 0x1680],
  [0x2000, 0x200a],
  [0x2028, 0x2029],
  [0x202f, 0x202f],
  [0x205f, 0x205f],
  [0x3000, 0x3000],
  [0xfeff, 0xfeff],
]

/** `.`: everything but line ends. */
export const dotSet: CodePointSet = complementOf([
  [0x0a, 0x0a],
  [0x0d, 0x0d],
  [0x2028, 0x2029],
])

/** The set of `\d`, `\w`, `\s` and their opposites. */
export function namedSet(letter: string): CodePointSet | undefined {
  return namedSets.get(letter)
}

const namedSets = new Map<string, CodePointSet>([
  ['d', digit],
  ['D', complementOf(digit)],
  ['w', word],
  ['W', complementOf(word)],
  ['s', space],
  ['S', complementOf(space)],
])
