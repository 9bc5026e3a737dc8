import { FirebreakError } from '../errors/firebreak-error.ts'
import type { ErrorReply } from '../resp/value.ts'

/** Why a connection to a Redis is unusable. */
export type RedisLostCode =
  | 'FB_REDIS_CONNECT'
  | 'FB_REDIS_TLS'
  | 'FB_REDIS_CLOSED'
  | 'FB_REDIS_TIMEOUT'
  | 'FB_REDIS_QUEUE_FULL'

/** A connection to a Redis could not be made or was lost; `address` names the server. */
export class RedisLostError extends FirebreakError {
  readonly address: string

  constructor(code: RedisLostCode, address: string, sentence: string, options?: ErrorOptions) {
    super(code, sentence, options)
    this.address = address
  }
}

/** The server answered a command with an error. */
export class RedisReplyError extends FirebreakError {
  /** The first word of the answer: `NOAUTH`, `MOVED`, `ERR`. */
  readonly kind: string

  constructor(command: string, reply: ErrorReply) {
    super('FB_REDIS_REPLY', `the server answers ${command} with: ${reply.text}`)
    this.kind = reply.kind
  }
}

/** The address of a Redis could not be parsed; its password is never shown. */
export class RedisUrlError extends FirebreakError {
  constructor(sentence: string) {
    super('FB_REDIS_URL', sentence)
  }
}

const tlsCode = /CERT|_SSL_|_TLS_|UNABLE_TO_|EPROTO/

/** The error for a pipe that ended. An untrusted certificate is reported as such, whenever that surfaces. */
export function lostError(address: string, wasOpen: boolean, cause: Error | undefined): RedisLostError {
  if (cause === undefined) return new RedisLostError('FB_REDIS_CLOSED', address, `${address} closed the connection`)
  if (tlsCode.test(String((cause as { code?: unknown }).code))) {
    const sentence = `no TLS connection to ${address}: ${cause.message}`
    return new RedisLostError('FB_REDIS_TLS', address, sentence, { cause })
  }
  return wasOpen
    ? new RedisLostError('FB_REDIS_CLOSED', address, `the connection to ${address} was lost: ${cause.message}`, {
        cause,
      })
    : new RedisLostError('FB_REDIS_CONNECT', address, `cannot connect to ${address}: ${cause.message}`, { cause })
}
