import { FirebreakError } from '@firebreak/core'

/** `protect` was given something that its hooks do not know. */
export class ClientUnsupportedError extends FirebreakError {
  constructor(name: string, advice = 'pass one of these') {
    super(
      'FB_CLIENT_UNSUPPORTED',
      `protect: ${name} is not an ioredis (5, 6), iovalkey or node-redis (5.12 or later, 6) client; ${advice}`,
    )
  }
}

/** An option was given that does not exist, most likely misspelt. */
export class UnknownOptionError extends FirebreakError {
  readonly option: string

  constructor(option: string, meant: string | undefined, known: readonly string[]) {
    const hint = meant === undefined ? `the options are ${known.join(', ')}` : `did you mean ${meant}?`
    super('FB_OPTION_INVALID', `protect: there is no option ${JSON.stringify(option)}; ${hint}`)
    this.option = option
  }
}
