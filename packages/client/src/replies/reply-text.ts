import { type CachedReply, nextReplyForm } from '@firebreak/shield'
import { textOfBulk } from './bulk.ts'

const textForm = nextReplyForm()

/** The text of a cached bulk string, made once for all readers; null for a key that does not exist. */
export function replyText(reply: CachedReply): string | null | undefined {
  const { forms } = reply
  const known = forms[textForm]
  if (known !== undefined) return known as string | null
  const text = textOfBulk(reply.bytes)
  forms[textForm] = text
  return text
}
