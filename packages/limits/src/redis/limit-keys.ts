import { keySlot } from '@firebreak/core'

/** The names on Redis of one key of one limit; all share the hash tag made of the key. */
export class LimitKeys {
  readonly #head: string
  readonly #tail: string

  constructor(prefix: string, id: string) {
    this.#head = `${escapeTag(prefix)}:{`
    this.#tail = `}:${escapeSegment(id)}`
  }

  state(key: string): string {
    return `${this.#head}${escapeTag(key)}${this.#tail}`
  }

  block(key: string): string {
    return `${this.#head}${escapeTag(key)}${this.#tail}:block`
  }

  refundMark(key: string, requestId: string): string {
    return `${this.#head}${escapeTag(key)}${this.#tail}:refund:${escapeSegment(requestId)}`
  }

  slot(key: string): number {
    return keySlot(this.state(key))
  }
}

const special = /[%{}:]/
const allSpecial = /[%{}:]/g
const inTag = /[%{}]/
const allInTag = /[%{}]/g
const encode = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`

/**
 * A segment of a Redis key: `% { } :` are percent-encoded, so that no segment can end another, close a hash tag or
 * stand for two. An empty one is `%`, which nothing else becomes (an empty hash tag is none).
 */
export function escapeSegment(segment: string): string {
  if (segment === '') return '%'
  return special.test(segment) ? segment.replace(allSpecial, encode) : segment
}

/** The same for what stands in the hash tag, or before it, where a colon cannot be mistaken. */
function escapeTag(segment: string): string {
  if (segment === '') return '%'
  return inTag.test(segment) ? segment.replace(allInTag, encode) : segment
}
