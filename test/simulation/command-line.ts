import type { Fault, FaultSchedule } from '@firebreak/testkit'
import type { ModelName } from './models.ts'
import { modelNames } from './models.ts'

/** The options of `npm run simulate`. */
export interface SimulateOptions {
  readonly model: ModelName
  /** The named model; with mutants, only its bugs are planted. */
  readonly namesModel: boolean
  readonly seeds: readonly number[]
  /** These faults instead of the seed's own. */
  readonly faults: FaultSchedule | undefined
  readonly isJson: boolean
  readonly runsMutants: boolean
  /** Of the mutants, only those whose name has these words. */
  readonly only: string
  /** Ends at the first seed that fails, and does not shrink it. */
  readonly isHasty: boolean
}

export const usage = `usage: npm run simulate -- --seed N [--faults LIST] [--model ${modelNames.join('|')}]
       npm run simulate -- --seeds N [--from N] [--json] [--model …]
       npm run simulate -- --mutants [--model …] [--only WORDS] [--json]

LIST is kind/target/at[/for[/amount]] with commas between, times in milliseconds, - for none.`

/** Parses a command line; throws an error with a sentence if it is wrong. */
export function parseOptions(words: readonly string[]): SimulateOptions {
  const given = new Map<string, string>()
  const flags = new Set(['json', 'mutants', 'hasty'])
  for (let index = 0; index < words.length; index++) {
    const match = /^--([a-z]+)(?:=(.*))?$/.exec(words[index]!)
    if (match === null) throw new Error(`what is "${words[index]}"?\n${usage}`)
    const [, name, value] = match as unknown as [string, string, string | undefined]
    if (![...flags, 'seed', 'seeds', 'from', 'faults', 'model', 'only'].includes(name))
      throw new Error(`no --${name}\n${usage}`)
    given.set(name, value ?? (flags.has(name) ? '' : (words[++index] ?? '')))
  }
  const model = (given.get('model') ?? 'fleet') as ModelName
  if (!modelNames.includes(model)) throw new Error(`no model "${model}"; there are ${modelNames.join(', ')}`)
  const whole = (name: string, otherwise: number): number => {
    const value = Number(given.get(name) ?? otherwise)
    if (!Number.isSafeInteger(value) || value < 0) throw new Error(`--${name} must be a whole number`)
    return value
  }
  const from = given.has('seed') ? whole('seed', 1) : whole('from', 1)
  const count = given.has('seed') ? 1 : whole('seeds', 1)
  const faults = given.get('faults')
  return {
    model,
    namesModel: given.has('model'),
    seeds: Array.from({ length: count }, (_, index) => from + index),
    faults: faults === undefined ? undefined : parseFaults(faults),
    isJson: given.has('json'),
    runsMutants: given.has('mutants'),
    only: given.get('only') ?? '',
    isHasty: given.has('hasty'),
  }
}

/** A schedule in the form that `--faults` accepts. */
export function formatFaults(schedule: FaultSchedule): string {
  return schedule
    .map(({ kind, target, atMs, forMs, amount }) => `${kind}/${target}/${atMs}/${forMs ?? '-'}/${amount ?? '-'}`)
    .join(',')
}

export function parseFaults(text: string): FaultSchedule {
  return text
    .split(',')
    .filter((word) => word !== '')
    .map((word): Fault => {
      const [kind = '', target = '', at = '', length = '-', amount = '-'] = word.split('/')
      const atMs = Number(at)
      if (kind === '' || target === '' || !Number.isFinite(atMs)) throw new Error(`"${word}" is no fault\n${usage}`)
      return {
        atMs,
        kind,
        target,
        ...(length !== '-' && { forMs: Number(length) }),
        ...(amount !== '-' && { amount: Number(amount) }),
      }
    })
}
