import type { UpstreamLostError } from '../errors.ts'

/** What a client is answered whose request has lost its connection. */
export function lostReply(error: UpstreamLostError, wasSent: boolean): Buffer {
  if (error.refusal !== undefined) return error.refusal
  if (!wasSent) return Buffer.from(`-ERR Firebreak: ${error.message.replaceAll(/[\r\n]+/g, ' ')}\r\n`)
  return Buffer.from(
    `-ERR Firebreak: the connection to Redis at ${error.address} was lost before the reply came; whether the command was carried out is unknown\r\n`,
  )
}
