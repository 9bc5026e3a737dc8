import { didYouMean } from '../errors/did-you-mean.ts'
import { describeValue } from '../errors/firebreak-error.ts'

/** Makes the error of a wrong field; `field` is its path, the message names it too. */
export type FieldFailure = (field: string, message: string) => Error

/** The numbers that a field takes. */
export interface NumberRange {
  readonly min: number
  readonly max: number
  /** @default false */
  readonly isInteger?: boolean
}

/**
 * Reads an object that a person wrote, field by field. Every name that was asked for is known; `end()` refuses the rest,
 * with the closest known name as a suggestion. A field that is absent, undefined or null is the same thing.
 */
export class FieldReader {
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #path: string
  readonly #failure: FieldFailure
  readonly #asked = new Set<string>()
  readonly #hidesValues: boolean

  /** With `hidesValues` no error repeats what was given, for files of secrets: one may stand in any field. */
  constructor(value: unknown, path: string, failure: FieldFailure, what = 'an object', hidesValues = false) {
    this.#hidesValues = hidesValues
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw failure(path, `${path === '' ? 'this' : path} ${this.#given(value)}must be ${what}`)
    }
    this.#fields = value as Record<string, unknown>
    this.#path = path
    this.#failure = failure
  }

  /** The path of a field, as errors name it. */
  at(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`
  }

  has(name: string): boolean {
    this.#asked.add(name)
    return this.#fields[name] !== undefined && this.#fields[name] !== null
  }

  /** The first of these names that is given; two of them at once are refused. */
  oneOf(names: readonly string[]): string | undefined {
    const given = names.filter((name) => this.has(name))
    if (given.length > 1)
      this.fail(given[1]!, `${this.at(given[1]!)} cannot stand beside ${given[0]}; give one of them`)
    return given[0]
  }

  raw(name: string): unknown {
    return this.has(name) ? this.#fields[name] : undefined
  }

  number<Fallback>(name: string, range: NumberRange, fallback: Fallback): number | Fallback {
    if (!this.has(name)) return fallback
    const value = this.#fields[name]
    const { min, max, isInteger = false } = range
    if (typeof value === 'number' && value >= min && value <= max && (!isInteger || Number.isInteger(value)))
      return value
    const kind = isInteger ? 'a whole number' : 'a number'
    return this.#refuse(name, value, `${kind} from ${plain(min)} to ${plain(max)}`)
  }

  text<Fallback>(name: string, fallback: Fallback): string | Fallback {
    if (!this.has(name)) return fallback
    const value = this.#fields[name]
    return typeof value === 'string' && value !== '' ? value : this.#refuse(name, value, 'a text that is not empty')
  }

  flag<Fallback>(name: string, fallback: Fallback): boolean | Fallback {
    if (!this.has(name)) return fallback
    const value = this.#fields[name]
    return typeof value === 'boolean' ? value : this.#refuse(name, value, 'true or false')
  }

  choice<Choice extends string, Fallback>(
    name: string,
    choices: readonly Choice[],
    fallback: Fallback,
  ): Choice | Fallback {
    if (!this.has(name)) return fallback
    const value = this.#fields[name]
    const found = choices.find((choice) => choice === value)
    if (found !== undefined) return found
    const close = typeof value === 'string' ? didYouMean(value, choices) : undefined
    return this.#refuse(name, value, `one of ${choices.join(', ')}`, close)
  }

  list(name: string): readonly unknown[] | undefined {
    if (!this.has(name)) return undefined
    const value = this.#fields[name]
    return Array.isArray(value) ? value : this.#refuse(name, value, 'a list')
  }

  fail(name: string, message: string): never {
    // A field that is missing because it was misspelt: the misspelt one is what helps.
    if (this.#fields[name] === undefined) {
      for (const given of Object.keys(this.#fields)) {
        if (this.#asked.has(given) || didYouMean(given, [name]) === undefined) continue
        throw this.#failure(this.at(given), `there is no field ${this.at(given)}; did you mean ${name}?`)
      }
    }
    throw this.#failure(this.at(name), message)
  }

  /** Refuses every field that nobody asked for. */
  end(): void {
    for (const name of Object.keys(this.#fields)) {
      if (this.#asked.has(name)) continue
      const close = didYouMean(name, this.#asked)
      if (this.#hidesValues && close === undefined) {
        const place = this.#path === '' ? 'a field' : `a field of ${this.#path}`
        throw this.#failure(this.#path, `${place} is not known; known are ${[...this.#asked].join(', ')}`)
      }
      this.fail(name, `there is no field ${this.at(name)}${close === undefined ? '' : `; did you mean ${close}?`}`)
    }
  }

  #refuse(name: string, value: unknown, expected: string, close?: string): never {
    const hint = close === undefined ? '' : `; did you mean ${close}?`
    this.fail(name, `${this.at(name)} ${this.#given(value)}must be ${expected}${hint}`)
  }

  #given(value: unknown): string {
    return this.#hidesValues ? '' : `is ${describeValue(value)}; it `
  }
}

function plain(value: number): string {
  return Number.isInteger(value) ? value.toLocaleString('en-US') : String(value)
}
