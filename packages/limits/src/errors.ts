import { describeValue, FirebreakError } from '@firebreak/core'

/** The cost of a call is not a whole number from 0 up. */
export class LimitCostError extends FirebreakError {
  readonly cost: unknown

  constructor(cost: unknown) {
    super('FB_LIMIT_COST', `the cost is ${describeValue(cost)}; it must be a whole number, 0 or more`)
    this.cost = cost
  }
}

/** A `wait` ended without its turn: the limit cannot admit it before the deadline, or the line is full. */
export class LimitWaitError extends FirebreakError {
  readonly key: string
  /** When it could have been admitted, as far as known; null if never. */
  readonly retryAfterMs: number | null

  constructor(
    code: 'FB_LIMIT_WAIT_TOO_LONG' | 'FB_LIMIT_WAIT_FULL' | 'FB_LIMIT_WAIT_NEVER',
    message: string,
    key: string,
    retryAfterMs: number | null,
  ) {
    super(code, message)
    this.key = key
    this.retryAfterMs = retryAfterMs
  }
}

/** Redis did not answer, so it is unknown whether a refund, reset or block was done. */
export class LimitUnavailableError extends FirebreakError {
  readonly limit: string

  constructor(limit: string) {
    super(
      'FB_LIMIT_UNAVAILABLE',
      `the limit ${limit} could not be reached; try again (a refund with the same request id)`,
    )
    this.limit = limit
  }
}

/** Limits of one `all` call lie on different cluster slots, or on different servers. */
export class LimitAtomicError extends FirebreakError {
  constructor(message: string) {
    super('FB_LIMIT_ATOMIC', message)
  }
}

/** A middleware's limit refused the request; for frameworks that answer through exceptions. */
export class TooManyRequestsError extends FirebreakError {
  readonly status = 429
  readonly retryAfterSeconds: number

  constructor(retryAfterSeconds: number) {
    super('FB_LIMIT_EXCEEDED', `too many requests; try again in ${retryAfterSeconds} s`)
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** A policy is invalid; the message begins with file:line if it came from a file. */
export class PolicyError extends FirebreakError {
  readonly file: string
  readonly line: number | undefined

  constructor(file: string, line: number | undefined, message: string) {
    super('FB_POLICY_INVALID', `${file}${line === undefined ? '' : `:${line}`}: ${message}`)
    this.file = file
    this.line = line
  }
}
