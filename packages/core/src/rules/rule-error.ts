import { FirebreakError } from '../errors/firebreak-error.ts'

/** A rule that cannot be taken, with the field that is wrong. */
export class RuleInvalidError extends FirebreakError {
  /** The path of the field: `levels[1].enter`. */
  readonly field: string

  constructor(field: string, message: string) {
    super('FB_RULE_INVALID', message)
    this.field = field
  }
}
