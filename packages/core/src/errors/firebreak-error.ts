/** The base of every error that Firebreak throws: a stable `code`, a sentence, and the data as fields of subclasses. */
export class FirebreakError extends Error {
  readonly code: `FB_${string}`

  constructor(code: `FB_${string}`, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** An option of a public call is out of its range; thrown where the caller made the mistake. */
export class InvalidOptionError extends FirebreakError {
  readonly option: string
  readonly value: unknown

  constructor(option: string, value: unknown, expected: string) {
    super('FB_OPTION_INVALID', `option ${option} is ${describeValue(value)}; it must be ${expected}`)
    this.option = option
    this.value = value
  }
}

/** A short, safe rendering of a value for an error sentence. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') return JSON.stringify(value.length > 60 ? `${value.slice(0, 57)}…` : value)
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
