import { createHash } from 'node:crypto'
import type { ReadCommand } from '../cache/read-command.ts'
import { resp2Form } from '../cache/resp2-form.ts'
import { luaSource } from '../script/lua-source.ts'

/** A shorter reply is sent as fast as its digest. */
const leastDigestedBytes = 256

const script = new URL('./digest.lua', import.meta.url)

/** True if asking for a reply's digest costs less than asking for the reply. */
export function isWorthDigesting(reply: Uint8Array): boolean {
  return reply.length >= leastDigestedBytes
}

/** The bytes that ask Redis for the digest of a command's reply. */
export function encodeDigest(command: ReadCommand): Uint8Array {
  return command.encodeIn(luaSource(script))
}

/** True if `answer`, Redis' reply to `encodeDigest`, is the digest of this reply. */
export function isDigestOf(command: ReadCommand, reply: Uint8Array, answer: Uint8Array): boolean {
  const form = resp2Form(command.name, reply)
  const digest = createHash('sha1').update(form).digest('hex')
  return Buffer.from(answer.buffer, answer.byteOffset, answer.length).toString('latin1') === `$40\r\n${digest}\r\n`
}
