import { FirebreakError } from '../errors/firebreak-error.ts'

/** A regular expression was refused, with the position and the reason. */
export class RegexError extends FirebreakError {
  readonly regex: string
  /** The index of the offending character. */
  readonly position: number

  constructor(regex: string, position: number, reason: string) {
    super('FB_REGEX_INVALID', `the regular expression is wrong at character ${position + 1}: ${reason}`)
    this.regex = regex
    this.position = position
  }
}
