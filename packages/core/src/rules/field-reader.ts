import { didYouMean } from '../errors/did-you-mean.ts'
import { describeValue } from '../errors/firebreak-error.ts'

/** Makes the error for an invalid field; `field` is its path, which the message contains too. */
export type FieldFailure = (field: string, message: string) => Error

/** The numbers that a field takes. */
export interface NumberRange {
  readonly min: number
  readonly max: number
  /** @default false */
  readonly isInteger?: boolean
}

/**
 * Reads a user's object field by field. Every field that was asked for is known; `end()` refuses the rest, suggesting
 * the closest known name. Absent, undefined and null are the same.
 */
export class FieldReader {
  readonly #fields: Readonly<Record<string, unknown>>
  readonly #path: string
  readonly #failure: FieldFailure
  readonly #asked = new Set<string>()
  readonly #hidesValues: boolean

  /** With `hidesValues` no error repeats a value, for files with secrets: any field may contain one. */
  constructor(value: unknown, path: string, failure: FieldFailure, what = 'an object', hidesValues = false) {
    this.#hidesValues = hidesValues
    if (typeof value !== 'object' || value === null || Array.isArray(value)) {
      throw failure(path, `${path === '' ? 'this' : path} ${this.#given(value)}must be ${what}`)
    }
    this.#fields = value as Record<string, unknown>
    this.#path = path
    this.#failure = failure
  }

  /** The path of a field, as used in errors. */
  at(name: string): string {
    return this.#path === '' ? name : `${this.#path}.${name}`
  }

  has(name: string): boolean {
    this.#asked.add(name)
    return this.#fields[name] !== undefined && this.#fields[name] !== null
  }

  /** The one of these names that is given; giving two is an error. */
  oneOf(names: readonly string[]): string | undefined {
    const given = names.filter((name) => this.has(name))
    if (given.length > 1)
      this.fail(given[1]!, `${this.at(given[1]!)} cannot be combined with ${given[0]}; give one of them`)
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
    return typeof value === 'string' && value !== '' ? value : this.#refuse(name, value, 'a non-empty string')
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

  /** Refuses a field; `names` are others that would have been accepted in its place. */
  fail(name: string, message: string, names: readonly string[] = []): never {
    // If a field is missing because it was misspelled, point at the misspelled one.
    if (this.#fields[name] === undefined) {
      for (const given of Object.keys(this.#fields)) {
        const close = this.#asked.has(given) ? undefined : didYouMean(given, [name, ...names])
        if (close === undefined) continue
        throw this.#failure(this.at(given), `unknown field ${this.at(given)}; did you mean ${close}?`)
      }
    }
    throw this.#failure(this.at(name), message)
  }

  /** Refuses every field that was never asked for. */
  end(): void {
    for (const name of Object.keys(this.#fields)) {
      if (this.#asked.has(name)) continue
      const close = didYouMean(name, this.#asked)
      if (this.#hidesValues && close === undefined) {
        const place = this.#path === '' ? 'a field' : `a field of ${this.#path}`
        throw this.#failure(this.#path, `${place} is unknown; known fields are ${[...this.#asked].join(', ')}`)
      }
      this.fail(name, `unknown field ${this.at(name)}${close === undefined ? '' : `; did you mean ${close}?`}`)
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
