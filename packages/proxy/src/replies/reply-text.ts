import type { UpstreamLostError } from '../errors.ts'

/** The answer for a client whose request lost its connection. */
export function lostReply(error: UpstreamLostError, wasSent: boolean): Buffer {
  if (error.refusal !== undefined) return error.refusal
  if (!wasSent) return Buffer.from(`-ERR Firebreak: ${error.message.replaceAll(/[\r\n]+/g, ' ')}\r\n`)
  return Buffer.from(
    `-ERR Firebreak: the connection to Redis at ${error.address} was lost before the reply came; whether the command was carried out is unknown\r\n`,
  )
}

/** True for a single-text reply: bulk or verbatim. */
export function isText(reply: Uint8Array): boolean {
  return reply[0] === 0x24 || reply[0] === 0x3d
}

/** A single-text reply with an edited text (latin1, including the format of a verbatim string). */
export function editedText(reply: Buffer, edit: (text: string) => string): Buffer {
  const text = edit(reply.toString('latin1', reply.indexOf(0x0a) + 1, reply.length - 2))
  return Buffer.from(`${String.fromCharCode(reply[0]!)}${text.length}\r\n${text}\r\n`, 'latin1')
}
