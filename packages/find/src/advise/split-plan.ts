import { crc32 } from 'node:zlib'
import type { KeyRouter } from '../connect/key-router.ts'
import { fields, number, text } from '../connect/replies.ts'
import { FindError } from '../errors.ts'
import { escapeKey } from '../keys/escape-key.ts'

/** Types that can be split. */
export type SplitType = 'hash' | 'set' | 'list'

/** How a key is split and how far that has come; stored in Redis next to the key, so that anyone can resume it. */
export interface SplitPlan {
  readonly key: Buffer
  readonly type: SplitType
  readonly segments: number
  /** Elements per segment of a list; 0 for a hash or set, whose elements are placed by their hash. */
  readonly segmentElements: number
  /** `copied` once every element has been compared; `cut-over` once the source has been removed. */
  readonly state: 'copying' | 'copied' | 'cut-over'
  /** Where copying resumes: SCAN's cursor, or the index in a list. */
  readonly cursor: string
  readonly copied: number
}

/** The key that holds the plan. */
export function planKey(key: Uint8Array): Buffer {
  return Buffer.concat([key, Buffer.from(':segments')])
}

/** The key of segment n. */
export function segmentKey(key: Uint8Array, segment: number): Buffer {
  return Buffer.concat([key, Buffer.from(`:${segment}`)])
}

/** The segment of a field or member: CRC-32 (IEEE, as in every language's zlib) modulo the number of segments. */
export function segmentOf(element: Uint8Array, segments: number): number {
  return crc32(element) % segments
}

export async function readPlan(router: KeyRouter, key: Buffer): Promise<SplitPlan | undefined> {
  const name = planKey(key)
  const values = fields(await router.send(name, ['HGETALL', name]))
  if (values.size === 0) return undefined
  return {
    key,
    type: text(values.get('type')) as SplitType,
    segments: number(values.get('segments')),
    segmentElements: number(values.get('segmentElements')),
    state: text(values.get('state')) as SplitPlan['state'],
    cursor: text(values.get('cursor')),
    copied: number(values.get('copied')),
  }
}

export async function writePlan(router: KeyRouter, plan: SplitPlan): Promise<void> {
  const { key, ...values } = plan
  const name = planKey(key)
  await router.send(name, ['HSET', name, ...Object.entries(values).flatMap(([field, value]) => [field, String(value)])])
}

/** A new plan for a key; refuses what cannot be split and what would overwrite foreign keys. */
export async function makePlan(router: KeyRouter, key: Buffer, wanted: number | undefined): Promise<SplitPlan> {
  const type = text(await router.send(key, ['TYPE', key]))
  const shown = escapeKey(key)
  if (type === 'none') throw new FindError('FB_SPLIT_REFUSED', `no such key: "${shown}"`)
  if (type !== 'hash' && type !== 'set' && type !== 'list') {
    throw new FindError('FB_SPLIT_REFUSED', `"${shown}" is a ${type}; a hash, a set or a list can be split`)
  }
  const elements = number(await router.send(key, [{ hash: 'HLEN', set: 'SCARD', list: 'LLEN' }[type], key]))
  const segments = wanted ?? Math.max(2, Math.ceil(elements / 5000))
  if (!Number.isInteger(segments) || segments < 2 || segments > 100_000) {
    throw new FindError('FB_SPLIT_REFUSED', `${segments} is not a valid number of segments; choose 2 to 100,000`)
  }
  for (let segment = 0; segment < segments; segment++) {
    const name = segmentKey(key, segment)
    if (number(await router.send(name, ['EXISTS', name])) !== 0) {
      throw new FindError(
        'FB_SPLIT_REFUSED',
        `"${escapeKey(name)}" exists and was not created by Firebreak: nothing was changed; rename it or choose another number of segments`,
      )
    }
  }
  const segmentElements = type === 'list' ? Math.ceil(elements / segments) : 0
  return { key, type, segments, segmentElements, state: 'copying', cursor: '0', copied: 0 }
}
