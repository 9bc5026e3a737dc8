import { FirebreakError } from '@firebreak/core'
import { explainStoreTrouble } from './store/store-trouble.ts'

/** A hub that would listen beyond loopback without tokens. */
export class NotLoopbackError extends FirebreakError {
  readonly host: string

  constructor(host: string) {
    super(
      'FB_HUB_NOT_LOOPBACK',
      `the hub will not listen on ${host} without tokens: anyone who can reach it could change rules; set tokens (tokensFile) or listen on 127.0.0.1`,
    )
    this.host = host
  }
}

/** A setting of the hub is wrong. */
export class HubConfigError extends FirebreakError {
  readonly field: string

  constructor(field: string, message: string, options?: ErrorOptions) {
    super('FB_HUB_CONFIG', message, options)
    this.field = field
  }
}

/** The hub's store cannot be opened or used. */
export class StoreError extends FirebreakError {
  constructor(message: string, options?: ErrorOptions) {
    super('FB_HUB_STORE', message, options)
  }
}

/** A failing store refused a change, or it is unknown whether the change was made. */
export class StoreCallError extends FirebreakError {
  /** True if the change was certainly not made. */
  readonly isRefused: boolean

  constructor(cause: Error, isRefused: boolean) {
    const advice = isRefused
      ? 'nothing was changed; try again when the store has recovered'
      : 'the change may have been made; check what is in force, or resend it with the same idempotency-key, which applies it only once'
    super(
      isRefused ? 'FB_STORE_AWAY' : 'FB_STORE_UNSURE',
      `the store failed (${explainStoreTrouble(cause)}): ${advice}`,
      {
        cause,
      },
    )
    this.isRefused = isRefused
  }
}

/** An error response of the API: status, code, message, and the invalid field, if any. */
export class ApiProblem extends FirebreakError {
  readonly statusCode: number
  readonly field: string | undefined

  constructor(statusCode: number, code: `FB_${string}`, message: string, field?: string) {
    super(code, message)
    this.statusCode = statusCode
    this.field = field
  }
}
