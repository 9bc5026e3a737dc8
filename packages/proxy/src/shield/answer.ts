import type { CommandRow } from '@firebreak/core/commands'
import type { RespVersion } from '@firebreak/core/resp'
import { type CachedReply, nextReplyForm, resp2Form } from '@firebreak/shield'

/** The answer to a GET, kept with the reply that it was made of. */
export interface Answer {
  readonly bytes: Uint8Array
  /** The answer many times over, once somebody asked for it more than once in one go. */
  row: Uint8Array | undefined
}

/** Larger replies are weighed one by one. */
export const maxRepeatedBytes = 1024
/** A reply many times over is no longer than this. */
const rowBytes = 8 * maxRepeatedBytes

const resp2 = nextReplyForm()
const resp2Answer = nextReplyForm()
const resp3Answer = nextReplyForm()

/** What a GET is answered with. */
export function answerOf(reply: CachedReply, version: RespVersion): Answer {
  const { forms } = reply
  if (version === 3) return (forms[resp3Answer] ??= { bytes: reply.bytes, row: undefined }) as Answer
  return (forms[resp2Answer] ??= { bytes: asResp2('GET', reply), row: undefined }) as Answer
}

/** A command's reply in a version of the protocol. */
export function bytesFor(version: RespVersion, { name }: CommandRow, reply: CachedReply): Uint8Array {
  return version === 3 ? reply.bytes : asResp2(name, reply)
}

/** The RESP2 form of a command's reply, made once. */
function asResp2(commandName: string, reply: CachedReply): Uint8Array {
  return (reply.forms[resp2] ??= resp2Form(commandName, reply.bytes)) as Uint8Array
}

/** A small answer as often as it fits, one behind the other. */
export function rowOf(bytes: Uint8Array): Uint8Array {
  const row = new Uint8Array(rowBytes - (rowBytes % bytes.length))
  for (let at = 0; at < row.length; at += bytes.length) row.set(bytes, at)
  return row
}
