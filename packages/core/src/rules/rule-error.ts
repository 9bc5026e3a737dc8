import { FirebreakError } from '../errors/firebreak-error.ts'

/** A rule was refused; `field` says where it is wrong. */
export class RuleInvalidError extends FirebreakError {
  /** The path of the field: `levels[1].enter`. */
  readonly field: string

  constructor(field: string, message: string) {
    super('FB_RULE_INVALID', message)
    this.field = field
  }
}
