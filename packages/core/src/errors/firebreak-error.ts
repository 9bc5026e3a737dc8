/** The base of every error that Firebreak throws: a stable `code`, a sentence, and data in fields of the subclasses. */
export class FirebreakError extends Error {
  readonly code: `FB_${string}`

  constructor(code: `FB_${string}`, message: string, options?: ErrorOptions) {
    super(message, options)
    this.name = new.target.name
    this.code = code
  }
}

/** An option of a public call is out of range; thrown at the call that got it wrong. */
export class InvalidOptionError extends FirebreakError {
  readonly option: string
  readonly value: unknown

  constructor(option: string, value: unknown, expected: string) {
    super('FB_OPTION_INVALID', `option ${option} is ${describeValue(value)}; it must be ${expected}`)
    this.option = option
    this.value = value
  }
}

/** A text in which no URL has a user or a password. */
export function withoutCredentials(text: string): string {
  return text.replace(/(:\/\/)[^/\s"'@]*@/g, '$1…@')
}

/** A short, safe rendering of a value for an error sentence. */
export function describeValue(value: unknown): string {
  if (typeof value === 'string') {
    const text = withoutCredentials(value)
    return JSON.stringify(text.length > 60 ? `${text.slice(0, 57)}…` : text)
  }
  if (typeof value === 'object' && value !== null) return Array.isArray(value) ? 'an array' : 'an object'
  return String(value)
}
