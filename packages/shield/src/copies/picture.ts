import { ReplyDecoder, type RespValue } from '@firebreak/core/resp'

/** A key at one instant, as returned by `take.lua`. */
export interface Picture {
  readonly version: number
  readonly pttlMs: number
  /** True if a process follows the key and will replace this picture with the next one. */
  readonly isFollowed: boolean
  /** When it was requested: its contents may be that old. */
  readonly askedAt: number
  /** Undefined if the key does not exist. */
  readonly dump: Uint8Array | undefined
}

/** What a script answered. */
export function decodeAnswer(reply: Uint8Array): RespValue | undefined {
  const decoder = new ReplyDecoder({ bulk: 'copy' })
  decoder.feed(reply)
  return decoder.next()
}

/** The picture in an answer of `take.lua`; undefined if it is an error or did not arrive. */
export function pictureOf(answer: RespValue | undefined, askedAt: number): Picture | undefined {
  if (!Array.isArray(answer) || typeof answer[0] !== 'number' || typeof answer[1] !== 'number') return undefined
  const [version, pttlMs, isFollowed, dump] = answer
  return { version, pttlMs, isFollowed: isFollowed === 1, askedAt, dump: dump instanceof Uint8Array ? dump : undefined }
}
