import type { UpstreamLostError } from '../errors.ts'

/** What a client is answered whose request has lost its connection. */
export function lostReply(error: UpstreamLostError, wasSent: boolean): Buffer {
  if (error.refusal !== undefined) return error.refusal
  if (!wasSent) return Buffer.from(`-ERR Firebreak: ${error.message.replaceAll(/[\r\n]+/g, ' ')}\r\n`)
  return Buffer.from(
    `-ERR Firebreak: the connection to Redis at ${error.address} was lost before the reply came; whether the command was carried out is unknown\r\n`,
  )
}

/** A reply of one text (bulk or verbatim) with more text behind it. */
export function longerText(reply: Buffer, more: string): Buffer {
  const bodyStart = reply.indexOf(0x0a) + 1
  const body = reply.subarray(bodyStart, reply.length - 2)
  const added = Buffer.from(more, 'latin1')
  const head = Buffer.from(`${String.fromCharCode(reply[0]!)}${body.length + added.length}\r\n`)
  return Buffer.concat([head, body, added, Buffer.from('\r\n')])
}
