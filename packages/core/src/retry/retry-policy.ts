import { didYouMean } from '../errors/did-you-mean.ts'
import { describeValue } from '../errors/firebreak-error.ts'
import { type FieldFailure, FieldReader } from '../rules/field-reader.ts'

/**
 * What happens to a step that has used up its tries.
 *
 * - `alarm`: retries continue, at the longest pause, and the alarm becomes critical.
 * - `drop`: the current work is given up and reported, and the next begins.
 * - `stop`: the step ends until its process is restarted, and nothing that depends on it is served.
 */
export type RetryEnd = 'alarm' | 'drop' | 'stop'

/** How a failed step is retried; every number is the one in force, `Infinity` if there is no bound. */
export interface RetryPolicy {
  /** Tries after the first failure, in a row. */
  readonly tries: number
  /** The first pause; each further one is twice as long … */
  readonly firstMs: number
  /** … up to this. A random half of every pause is left out, so that processes do not retry in step. */
  readonly mostMs: number
  /** No try begins later than this after the first failure. */
  readonly deadlineMs: number
  readonly atEnd: RetryEnd
}

/** What users can set for a step; everything else keeps its default. */
export interface RetryOptions {
  readonly tries?: number | 'endless'
  readonly firstMs?: number
  readonly mostMs?: number
  readonly deadlineMs?: number | 'none'
  readonly atEnd?: RetryEnd
}

/** A step that can fail: its default retry policy, and which ends it allows. */
export interface RetryStep {
  readonly what: string
  readonly policy: RetryPolicy
  readonly ends: readonly RetryEnd[]
}

/** The steps of a room by name. */
export type RetrySteps<Name extends string = string> = Readonly<Record<Name, RetryStep>>

/** User-defined policies by step. */
export type RetryChoices<Name extends string = string> = { readonly [Step in Name]?: RetryOptions }

const maxTries = 1_000_000
const maxMs = 86_400_000

/** Every step's policy: the user's choice, or the step's default. Refuses unknown steps, fields and ends. */
export function resolveRetry<Name extends string>(
  steps: RetrySteps<Name>,
  choices: RetryChoices<Name>,
  failure: FieldFailure,
  path = 'retry',
): Readonly<Record<Name, RetryPolicy>> {
  const fields = new FieldReader(choices, path, failure, 'an object of steps')
  const resolved = Object.entries<RetryStep>(steps).map(([name, step]) => {
    const chosen = fields.raw(name)
    return [name, chosen === undefined ? step.policy : resolveOne(step, chosen, fields.at(name), failure)]
  })
  fields.end()
  return Object.fromEntries(resolved) as Record<Name, RetryPolicy>
}

function resolveOne({ policy, ends }: RetryStep, chosen: unknown, path: string, failure: FieldFailure): RetryPolicy {
  const fields = new FieldReader(chosen, path, failure, 'an object with tries, firstMs, mostMs, deadlineMs, atEnd')
  const bound = (name: 'tries' | 'deadlineMs', none: string, min: number, max: number) =>
    fields.raw(name) === none
      ? Number.POSITIVE_INFINITY
      : fields.number(name, { min, max, isInteger: true }, policy[name])
  const firstMs = fields.number('firstMs', { min: 1, max: maxMs, isInteger: true }, policy.firstMs)
  // A first pause beyond the default longest pause raises that one too.
  const mostMs = fields.number('mostMs', { min: 1, max: maxMs, isInteger: true }, Math.max(firstMs, policy.mostMs))
  if (mostMs < firstMs)
    fields.fail('mostMs', `${fields.at('mostMs')} is ${mostMs}; it must be firstMs (${firstMs}) or more`)
  const resolved: RetryPolicy = {
    tries: bound('tries', 'endless', 0, maxTries),
    firstMs,
    mostMs,
    deadlineMs: bound('deadlineMs', 'none', 1, maxMs),
    atEnd: fields.choice('atEnd', ends, policy.atEnd),
  }
  fields.end()
  return resolved
}

/**
 * The same in the form that users write in a flag: the step, then whatever differs from the default, such as `redis
 * tries=20 firstMs=100 mostMs=5000 deadlineMs=60000 atEnd=drop`.
 */
export function parseRetryLines<Name extends string>(
  steps: RetrySteps<Name>,
  lines: readonly string[],
  failure: FieldFailure,
): RetryChoices<Name> {
  const choices: Record<string, Record<string, unknown>> = {}
  for (const line of lines) {
    const [name = '', ...fields] = line.trim().split(/\s+/)
    if (!Object.hasOwn(steps, name)) {
      const names = Object.keys(steps)
      const close = didYouMean(name, names)
      const hint = close === undefined ? '' : `; did you mean ${close}?`
      throw failure('retry', `retry has no step ${describeValue(name)}; there are ${names.join(', ')}${hint}`)
    }
    if (choices[name] !== undefined) throw failure('retry', `retry names the step ${name} twice`)
    choices[name] = Object.fromEntries(
      fields.map((field) => {
        const [, key, value] = /^(\w+)=(\w+)$/.exec(field) ?? []
        if (key === undefined || value === undefined)
          throw failure(
            'retry',
            `retry: ${describeValue(field)} of the step ${name} must be name=value, such as tries=5`,
          )
        return [key, /^\d+$/.test(value) ? Number(value) : value]
      }),
    )
  }
  return choices as unknown as RetryChoices<Name>
}

/** A step's default, as shown in the help and the docs. */
export function describePolicy({ tries, firstMs, mostMs, deadlineMs, atEnd }: RetryPolicy): string {
  const often = Number.isFinite(tries) ? `${tries} tries` : 'endless'
  const pauses = firstMs === mostMs ? `every ${firstMs} ms` : `${firstMs} to ${mostMs} ms`
  return `${often}, ${pauses}${Number.isFinite(deadlineMs) ? `, within ${deadlineMs} ms` : ''}, then ${atEnd}`
}
