import type { InspectedPayload } from '@firebreak/core'
import { type CommandArgument, encodeCommand, isErrorReply, ReplyDecoder, type RespValue } from '@firebreak/core/resp'

/** Sends a command to the key's node; undefined if there was no answer. */
export type AskNode = (command: Uint8Array) => Promise<Uint8Array | undefined>

/** Bytes of a value to show, and elements of one that has several. */
const maxValueBytes = 4096
const maxElements = 20

/** Describes a key, for users who ask at the hub; includes the value only if requested, and only its beginning. */
export async function inspectKey(
  ask: AskNode,
  key: Uint8Array,
  wantsValue: boolean,
): Promise<Omit<InspectedPayload, 'id'>> {
  const answer = async (...command: CommandArgument[]) => {
    const reply = await ask(encodeCommand(command))
    // What a server or a user's permissions refuse is left out.
    return reply === undefined || isErrorReply(reply) ? undefined : decoded(reply)
  }
  const type = await answer('TYPE', key)
  if (typeof type !== 'string') return { problem: 'its Redis did not answer' }
  if (type === 'none') return { type }
  const [pttl, bytes, encoding] = await Promise.all([
    answer('PTTL', key),
    answer('MEMORY', 'USAGE', key),
    answer('OBJECT', 'ENCODING', key),
  ])
  const value = wantsValue ? await beginningOf(answer, type, key) : undefined
  return {
    type,
    ...(typeof pttl === 'number' && pttl >= 0 && { ttlMs: pttl }),
    ...(typeof bytes === 'number' && { bytes }),
    ...(typeof encoding === 'string' && { encoding }),
    ...value,
  }
}

type Answer = (...command: CommandArgument[]) => Promise<RespValue | undefined>

async function beginningOf(
  answer: Answer,
  type: string,
  key: Uint8Array,
): Promise<Pick<InspectedPayload, 'value' | 'isCut'> | undefined> {
  if (type === 'string') {
    const [value, length] = await Promise.all([answer('GETRANGE', key, 0, maxValueBytes - 1), answer('STRLEN', key)])
    if (typeof value !== 'string') return undefined
    return { value: base64(value), isCut: typeof length === 'number' && length > maxValueBytes }
  }
  const last = maxElements - 1
  const questions: Readonly<Record<string, () => ReturnType<Answer>>> = {
    list: () => answer('LRANGE', key, 0, last),
    zset: () => answer('ZRANGE', key, 0, last, 'WITHSCORES'),
    set: () => answer('SSCAN', key, 0, 'COUNT', maxElements),
    hash: () => answer('HSCAN', key, 0, 'COUNT', maxElements),
    stream: () => answer('XREVRANGE', key, '+', '-', 'COUNT', maxElements),
  }
  const elements = await questions[type]?.()
  if (!Array.isArray(elements)) return undefined
  // A scan's answer begins with its cursor.
  const isScan = type === 'set' || type === 'hash'
  const text = JSON.stringify(isScan ? elements[1] : elements)
  return { value: base64(text.slice(0, maxValueBytes)), isCut: true }
}

/** Text with one byte per character, so that nothing is lost. */
function decoded(reply: Uint8Array): RespValue | undefined {
  const decoder = new ReplyDecoder({ bulk: 'copy' })
  decoder.feed(reply)
  return latin(decoder.next())
}

function latin(value: RespValue | undefined): RespValue | undefined {
  if (value instanceof Uint8Array) return Buffer.from(value).toString('latin1')
  return Array.isArray(value) ? value.map((item) => latin(item) ?? null) : value
}

function base64(latinText: string): string {
  return Buffer.from(latinText, 'latin1').toString('base64')
}
