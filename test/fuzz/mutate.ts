import type { SeededRandom } from './random.ts'
import type { FuzzTarget } from './target.ts'

/** Longer inputs are cut: a quadratic cost shows at this length. */
export const maxInputBytes = 16 * 1024

const numbers = [
  '0', '-1', '-0', '1', '2', '9', '10', '63', '64', '127', '128', '255', '256', '1000', '1001', '16383', '16384', '65535', '65536',
  '2147483647', '2147483648', '4294967295', '4294967296', '9007199254740991', '9007199254740993', '9223372036854775808',
  '18446744073709551616', '99999999999999999999', '1e309', '1e-7', '0x10', '+1', '01', 'NaN', 'Infinity', '',
] // biome-ignore format: a table
const bytes = [
  0, 1, 9, 10, 13, 32, 34, 35, 36, 37, 42, 45, 48, 58, 63, 64, 91, 92, 123, 127, 128, 129, 192, 253, 254, 255,
]
const values: readonly unknown[] = [
  null, true, false, 0, -1, 1.5, 1e308, -1e308, 2 ** 53, '', 'a', '\u0000', '\ud800', '*', '__proto__', 'constructor', [], {}, [[]], [null],
  { __proto__: null }, 'x'.repeat(3000), '%', '%zz', '9'.repeat(400),
] // biome-ignore format: a table

/** Another input near one that is known: one to four changes of bytes, of numbers in text, of pieces or of the JSON tree. */
export function mutate(random: SeededRandom, known: readonly Buffer[], target: FuzzTarget): Buffer {
  let input = random.pick(known)
  const changes = 1 + random.below(4)
  for (let change = 0; change < changes; change++) {
    const jsonAt = target.jsonAt?.(input) ?? -1
    if (jsonAt >= 0 && random.below(3) > 0) input = mutateJson(random, input, jsonAt)
    else input = random.pick(steps)(random, input, known, target)
  }
  return input.length > maxInputBytes ? input.subarray(0, maxInputBytes) : input
}

type Step = (random: SeededRandom, input: Buffer, known: readonly Buffer[], target: FuzzTarget) => Buffer

const splice = (input: Buffer, from: number, to: number, piece: Uint8Array): Buffer =>
  Buffer.concat([input.subarray(0, from), piece, input.subarray(to)])

function rangeOf(random: SeededRandom, input: Buffer): [number, number] {
  const from = random.below(input.length + 1)
  return [from, Math.min(input.length, from + random.below(random.pick([2, 8, 64, 1024])))]
}

function changedByte(random: SeededRandom, input: Buffer, change: (byte: number) => number): Buffer {
  if (input.length === 0) return Buffer.from([change(0) & 255])
  const copy = Buffer.from(input)
  const at = random.below(copy.length)
  copy[at] = change(copy[at]!) & 255
  return copy
}

const steps: readonly Step[] = [
  (random, input) => changedByte(random, input, (byte) => byte ^ (1 << random.below(8))),
  (random, input) => changedByte(random, input, () => random.pick(bytes)),
  (random, input) => changedByte(random, input, (byte) => byte + random.below(7) - 3),
  (random, input) => splice(input, ...rangeOf(random, input), Buffer.alloc(0)),
  (random, input) => input.subarray(0, random.below(input.length + 1)),
  (random, input) => {
    const at = random.below(input.length + 1)
    return splice(input, at, at, Buffer.from(Array.from({ length: 1 + random.below(8) }, () => random.below(256))))
  },
  // Repeats a piece, often enough for nesting and for quadratic costs.
  (random, input) => {
    const [from, to] = rangeOf(random, input)
    if (to === from) return input
    const times = Math.min(random.pick([1, 1, 1, 2, 2, 3, 20, 400, 20_000]), Math.ceil(maxInputBytes / (to - from)))
    return splice(input, to, to, Buffer.concat(Array.from({ length: times }, () => input.subarray(from, to))))
  },
  (random, input, known) => {
    const other = random.pick(known)
    return splice(input, ...rangeOf(random, input), other.subarray(...rangeOf(random, other)))
  },
  (random, input, _known, { words = [] }) => {
    if (words.length === 0) return input
    const [from, to] = rangeOf(random, input)
    const word = Buffer.from(random.pick(words), 'latin1')
    const times = random.below(12) === 0 ? random.pick([2, 2, 50, 5000]) : 1
    return splice(
      input,
      from,
      random.below(2) === 0 ? from : to,
      Buffer.concat(Array.from({ length: times }, () => word)),
    )
  },
  (random, input) => {
    const text = input.toString('latin1')
    const found = [...text.matchAll(/-?\d+/g)]
    if (found.length === 0) return input
    const match = random.pick(found)
    return splice(input, match.index, match.index + match[0].length, Buffer.from(random.pick(numbers)))
  },
]

function mutateJson(random: SeededRandom, input: Buffer, at: number): Buffer {
  let tree: unknown
  try {
    tree = JSON.parse(input.toString('utf8', at))
  } catch {
    return input
  }
  const holder = { tree }
  const places: { readonly of: Record<string, unknown>; readonly name: string }[] = []
  const visit = (of: Record<string, unknown>, depth: number): void => {
    for (const name of Object.keys(of)) {
      places.push({ of, name })
      if (typeof of[name] === 'object' && of[name] !== null && depth < 50)
        visit(of[name] as Record<string, unknown>, depth + 1)
    }
  }
  visit(holder, 0)
  const { of, name } = random.pick(places)
  const other = random.pick(places)
  switch (random.below(6)) {
    case 0:
      delete of[name]
      break
    case 1:
      of[name] = structuredClone(other.of[other.name])
      break
    case 2:
      of[random.pick(['a', '__proto__', 'constructor', other.name])] = random.pick(values)
      break
    case 3: {
      // Nested deeper than any call stack allows.
      let nested: unknown = of[name] ?? null
      for (let depth = random.pick([1, 5, 200]); depth > 0; depth--)
        nested = random.below(2) === 0 ? [nested] : { [name]: nested }
      of[name] = nested
      break
    }
    case 4:
      if (Array.isArray(of[name]))
        of[name] = Array.from({ length: random.pick([0, 2, 17, 300]) }, () => (of[name] as unknown[])[0] ?? null)
      else if (typeof of[name] === 'string') of[name] = (of[name] as string).repeat(random.pick([0, 2, 100]))
      else if (typeof of[name] === 'number') of[name] = Number(random.pick(numbers))
      break
    default:
      of[name] = random.pick(values)
  }
  const text = JSON.stringify(holder.tree) ?? ''
  return Buffer.concat([input.subarray(0, at), Buffer.from(text)])
}
