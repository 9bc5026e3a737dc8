import { keySlot } from '@firebreak/core/commands'
import type { LimitSpec } from '../spec/spec.ts'
import { specId } from '../spec/specs.ts'

/** The Redis keys for one key of one limit; all share the hash tag derived from the key. */
export class LimitKeys {
  readonly #head: string
  readonly #tail: string

  constructor(prefix: string, spec: LimitSpec) {
    this.#head = `${escapeTag(prefix)}:{`
    this.#tail = `}:${shortId(spec)}`
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

/**
 * The spec in a few letters: its kind's capitals and a digest (FNV-1a, 32 bits) of its parameters. Each key on Redis
 * contains it, so that two limits with the same prefix never share state, and changed parameters start over.
 */
function shortId(spec: LimitSpec): string {
  let digest = 0x811c9dc5
  for (const letter of specId(spec)) digest = Math.imul(digest ^ letter.charCodeAt(0), 0x01000193)
  return `${spec.kind[0]}${spec.kind.replace(/[a-z]/g, '').toLowerCase()}${(digest >>> 0).toString(36)}`
}

const special = /[%{}:]/
const allSpecial = /[%{}:]/g
const inTag = /[%{}]/
const allInTag = /[%{}]/g
const encode = (letter: string) => `%${letter.charCodeAt(0).toString(16)}`

/**
 * A segment of a Redis key: `% { } :` are percent-encoded, so that no segment can end another, close a hash tag or pass
 * for two. An empty one is written as `%`, which nothing else becomes (an empty hash tag does not count as one).
 */
export function escapeSegment(segment: string): string {
  if (segment === '') return '%'
  return special.test(segment) ? segment.replace(allSpecial, encode) : segment
}

/** The same for text in or before the hash tag, where a colon cannot be mistaken. */
function escapeTag(segment: string): string {
  if (segment === '') return '%'
  return inTag.test(segment) ? segment.replace(allInTag, encode) : segment
}
