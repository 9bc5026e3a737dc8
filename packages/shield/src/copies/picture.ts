import { ReplyDecoder, type RespValue } from '@firebreak/core'

/** A key at one instant, as `take.lua` gives it. */
export interface Picture {
  readonly version: number
  readonly pttlMs: number
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
export function pictureOf(answer: RespValue | undefined): Picture | undefined {
  if (!Array.isArray(answer) || typeof answer[0] !== 'number' || typeof answer[1] !== 'number') return undefined
  return { version: answer[0], pttlMs: answer[1], dump: answer[2] instanceof Uint8Array ? answer[2] : undefined }
}
