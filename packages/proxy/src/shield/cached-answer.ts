import type { CommandRow } from '@firebreak/core/commands'
import type { RespVersion } from '@firebreak/core/resp'
import { type CachedReply, nextReplyForm, resp2Form } from '@firebreak/shield'

/** The answer to a GET, stored with the reply that it was made from. */
export interface CachedAnswer {
  readonly bytes: Uint8Array
  /** The answer repeated many times, once a client has asked for it several times in one go. */
  row: Uint8Array | undefined
}

/** Larger replies are weighed one by one. */
export const maxRepeatedBytes = 1024
/** Maximum length of a repeated reply. */
const rowBytes = 8 * maxRepeatedBytes

const resp2 = nextReplyForm()
const resp2Answer = nextReplyForm()
const resp3Answer = nextReplyForm()

/** The answer to a GET. */
export function answerOf(reply: CachedReply, version: RespVersion): CachedAnswer {
  const { forms } = reply
  if (version === 3) return (forms[resp3Answer] ??= { bytes: reply.bytes, row: undefined }) as CachedAnswer
  return (forms[resp2Answer] ??= { bytes: asResp2('GET', reply), row: undefined }) as CachedAnswer
}

/** A command's reply in a protocol version. */
export function bytesFor(version: RespVersion, { name }: CommandRow, reply: CachedReply): Uint8Array {
  return version === 3 ? reply.bytes : asResp2(name, reply)
}

/** The RESP2 form of a command's reply, made once. */
function asResp2(commandName: string, reply: CachedReply): Uint8Array {
  return (reply.forms[resp2] ??= resp2Form(commandName, reply.bytes)) as Uint8Array
}

/** A small answer, repeated as often as it fits. */
export function rowOf(bytes: Uint8Array): Uint8Array {
  const row = new Uint8Array(rowBytes - (rowBytes % bytes.length))
  for (let at = 0; at < row.length; at += bytes.length) row.set(bytes, at)
  return row
}
