import { ReplyDecoder, type RespValue } from '@firebreak/core/resp'

/** A key at one instant, as `take.lua` gives it. */
export interface Picture {
  readonly version: number
  readonly pttlMs: number
  /** True where a process follows the key, and will put the next picture in this one's place. */
  readonly isFollowed: boolean
  /** When it was asked for: what it shows may be as old as that. */
  readonly askedAt: number
  /** Undefined where there is no such key. */
  readonly dump: Uint8Array | undefined
}

/** What a script answered. */
export function decodeAnswer(reply: Uint8Array): RespValue | undefined {
  const decoder = new ReplyDecoder({ bulk: 'copy' })
  decoder.feed(reply)
  return decoder.next()
}

/** The picture in an answer of `take.lua`; undefined where it is an error or did not come. */
export function pictureOf(answer: RespValue | undefined, askedAt: number): Picture | undefined {
  if (!Array.isArray(answer) || typeof answer[0] !== 'number' || typeof answer[1] !== 'number') return undefined
  const [version, pttlMs, isFollowed, dump] = answer
  return { version, pttlMs, isFollowed: isFollowed === 1, askedAt, dump: dump instanceof Uint8Array ? dump : undefined }
}
