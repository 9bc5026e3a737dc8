import { FirebreakError } from '@firebreak/core'

/** A connection to Redis could not be made or was lost. */
export class UpstreamLostError extends FirebreakError {
  readonly address: string
  readonly reason: string
  /** The server's answer when it refused the connection's user, protocol or database. */
  readonly refusal: Buffer | undefined

  constructor(address: string, reason: string, options: ErrorOptions & { refusal?: Buffer } = {}) {
    super('FB_PROXY_UPSTREAM', `no connection to Redis at ${address}: ${reason}`, options)
    this.address = address
    this.reason = reason
    this.refusal = options.refusal
  }
}

/** The proxy could not start with its options. */
export class ProxyStartError extends FirebreakError {
  constructor(message: string, options?: ErrorOptions) {
    super('FB_PROXY_START', message, options)
  }
}
