import type { KeyAccess } from './command-row.ts'

/**
 * Where a command's keys are. Index 0 is the command's name.
 *
 * In the table's rows a spec is a word, and a command has one or more of them:
 *
 * | word          | meaning                                                                                 |
 * | ------------- | --------------------------------------------------------------------------------------- |
 * | `r1`          | argument 1 is a key that is read (`w1`: written)                                        |
 * | `r1..2`       | arguments 1 to 2                                                                        |
 * | `r1..-1`      | arguments 1 to the last (-2: to the one before it)                                      |
 * | `w1..-1/2`    | every second one of these                                                               |
 * | `r#2`         | argument 2 is the number of keys, which follow it (`w#1/2`: each with a value)          |
 * | `w:STORE@6`   | the argument after each word STORE, from argument 6 on (`w:STORE\|STOREDIST@6`: either) |
 * | `r:STREAMS@1%`| the first half of the arguments after the word STREAMS                                  |
 * | `w?sort`      | a special rule: SORT's STORE, MIGRATE's KEYS, BITFIELD, which writes or only reads      |
 */
export type KeySpec =
  | {
      readonly kind: 'range'
      readonly access: KeyAccess
      readonly first: number
      readonly last: number
      readonly step: number
    }
  | { readonly kind: 'counted'; readonly access: KeyAccess; readonly countAt: number; readonly step: number }
  | {
      readonly kind: 'keyword'
      readonly access: KeyAccess
      readonly words: readonly string[]
      readonly from: number
      readonly isHalfOfRest: boolean
    }
  | { readonly kind: 'rule'; readonly access: KeyAccess; readonly rule: KeyRule }

/** The commands whose keys follow no pattern. */
export type KeyRule = 'sort' | 'migrate' | 'bitfield'

const rules: readonly string[] = ['sort', 'migrate', 'bitfield'] satisfies readonly KeyRule[]
const pattern = /^([rw])(?:#(\d+)(?:\/(\d+))?|:([A-Z|]+)@(\d+)(%?)|\?([a-z]+)|(\d+)(?:\.\.(-?\d+)(?:\/(\d+))?)?)$/

/** Reads the specs of a row, as `w1 r#2`. */
export function parseKeySpecs(text: string): readonly KeySpec[] {
  return text === '' ? [] : text.split(' ').map(parseKeySpec)
}

function parseKeySpec(text: string): KeySpec {
  const match = pattern.exec(text)
  if (match === null) throw new TypeError(`the command table has an invalid key spec: ${text}`)
  const [, letter, countAt, countStep, words, from, half, rule, first, last, step] = match
  const access = letter === 'w' ? 'write' : 'read'
  if (countAt !== undefined) return { kind: 'counted', access, countAt: Number(countAt), step: Number(countStep ?? 1) }
  if (words !== undefined) {
    return { kind: 'keyword', access, words: words.split('|'), from: Number(from), isHalfOfRest: half === '%' }
  }
  if (rule !== undefined) {
    if (!rules.includes(rule)) throw new TypeError(`the command table names an unknown rule: ${rule}`)
    return { kind: 'rule', access, rule: rule as KeyRule }
  }
  return { kind: 'range', access, first: Number(first), last: Number(last ?? first), step: Number(step ?? 1) }
}
