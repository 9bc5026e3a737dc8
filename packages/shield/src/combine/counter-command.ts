import type { CommandArgs, CommandRow } from '@firebreak/core/commands'

/** The commands that add an integer to a counter and return its new value. */
export type CounterName = 'INCR' | 'INCRBY' | 'DECR' | 'DECRBY' | 'HINCRBY'

/** The form of a counter's command: number of words, position of the amount (0: the amount is one), and direction. */
interface CounterForm {
  readonly name: CounterName
  readonly length: number
  readonly amountAt: number
  readonly sign: 1 | -1
}

const forms: ReadonlyMap<string, CounterForm> = new Map(
  (
    [
      { name: 'INCR', length: 2, amountAt: 0, sign: 1 },
      { name: 'DECR', length: 2, amountAt: 0, sign: -1 },
      { name: 'INCRBY', length: 3, amountAt: 2, sign: 1 },
      { name: 'DECRBY', length: 3, amountAt: 2, sign: -1 },
      { name: 'HINCRBY', length: 4, amountAt: 3, sign: 1 },
    ] as const
  ).map((form) => [form.name, form]),
)

/**
 * Amounts and values up to this are combined, far below the limits of Redis' 64 bits and JavaScript's numbers: so no
 * sum of a combined command overflows where its parts would not, unless somebody else has moved the counter there
 * meanwhile.
 */
export const largestCombined = 2 ** 52

/** An integer as Redis parses it: no sign except a minus, no leading zero, nothing around it. */
const wholeNumber = /^(?:0|-?[1-9]\d{0,15})$/

/** One increment of a counter. */
export interface CounterCommand {
  readonly name: CounterName
  /** The amount added; negative if it is subtracted. */
  readonly amount: number
  /** The index of the hash field argument; 0 if the counter is the key itself. */
  readonly fieldAt: number
}

const one: CounterCommand = { name: 'INCR', amount: 1, fieldAt: 0 }
const minusOne: CounterCommand = { name: 'DECR', amount: -1, fieldAt: 0 }

/** True if a command, by its name, may be an increment that can be combined. */
export function isCounterRow(row: CommandRow): boolean {
  return forms.has(row.name)
}

/** A command as an increment; undefined if it is not one, or only Redis knows what to say about it. */
export function counterCommandOf(
  row: CommandRow,
  args: CommandArgs,
  textAt: (index: number) => string,
): CounterCommand | undefined {
  const form = forms.get(row.name)
  if (form === undefined || args.length !== form.length) return undefined
  if (form.amountAt === 0) return form.sign > 0 ? one : minusOne
  const text = textAt(form.amountAt)
  if (!wholeNumber.test(text)) return undefined
  const amount = Number(text) * form.sign
  if (Math.abs(amount) > largestCombined) return undefined
  // Minus zero is zero.
  return { name: form.name, amount: amount === 0 ? 0 : amount, fieldAt: form.name === 'HINCRBY' ? 2 : 0 }
}

/** An increment to be sent by itself. */
export function wordsAlone(
  { name, amount }: Pick<CounterCommand, 'name' | 'amount'>,
  key: Uint8Array,
  field: Uint8Array | undefined,
): (string | Uint8Array)[] {
  switch (name) {
    case 'INCR':
    case 'DECR':
      return [name, key]
    case 'HINCRBY':
      return [name, key, field!, String(amount)]
    case 'INCRBY':
      return [name, key, String(amount)]
    case 'DECRBY':
      // Redis would not accept minus zero as a number.
      return [name, key, String(amount === 0 ? 0 : -amount)]
  }
}

/** Increments in one direction as one command. */
export function wordsTogether(
  sum: number,
  key: Uint8Array,
  field: Uint8Array | undefined,
): readonly [string, ...(string | Uint8Array)[]] {
  if (field !== undefined) return ['HINCRBY', key, field, String(sum)]
  return sum < 0 ? ['DECRBY', key, String(-sum)] : ['INCRBY', key, String(sum)]
}
