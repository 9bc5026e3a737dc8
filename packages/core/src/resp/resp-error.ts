import { FirebreakError } from '../errors/firebreak-error.ts'

/** What can be wrong with a stream of RESP. */
export type RespErrorCode = 'FB_RESP_PROTOCOL' | 'FB_RESP_TOO_LARGE' | 'FB_RESP_TOO_DEEP' | 'FB_RESP_REQUEST'

/** Bytes that are not RESP, or that exceed a bound. The stream cannot be read any further: close the connection. */
export class RespError extends FirebreakError {
  constructor(code: RespErrorCode, message: string) {
    super(code, message)
  }
}

/** A request that Redis refuses too; `reply` is the line (Latin-1) that it sends before it closes the connection. */
export class RequestError extends RespError {
  readonly reply: string

  constructor(sentence: string) {
    super('FB_RESP_REQUEST', `a client's request was refused: ${sentence}`)
    this.reply = `ERR Protocol error: ${sentence}`
  }
}
