import type { RedisType } from '../keys/found-key.ts'
import type { ValueTally } from './memory-model.ts'
import type { Container } from './packed.ts'

/**
 * How each type of value is laid out in a dump, as data: a shape is a list of steps, and the parser runs them. A step
 * reads one small item (a length, a string's header, a blob's header) and says how many bytes to skip, so that reading
 * can stop and resume between any two of them, whatever the size of the pieces.
 */
export type Step =
  /** A string that is an element: its size is added up. */
  | { readonly op: 'string' }
  /** A string that is not an element, such as the ID of a stream's node. */
  | { readonly op: 'name' }
  /** The string of a plain string value. */
  | { readonly op: 'value' }
  /** A number to ignore. */
  | { readonly op: 'number' }
  /** A number: how many elements there are. */
  | { readonly op: 'elements' }
  /** A number: a field's expiry, 0 for none. */
  | { readonly op: 'fieldTtl' }
  /** Eight bytes: a field's expiry, −1 for none. */
  | { readonly op: 'fieldTtl64' }
  | { readonly op: 'skip'; readonly bytes: number }
  /** A double as text, in the old form. */
  | { readonly op: 'score' }
  /** A number, then the body that many times. */
  | { readonly op: 'times'; readonly body: readonly Step[]; readonly counts?: keyof ValueTally }
  /** A packed container; `perElement` of its entries make one element, 0 if its entries do not count. */
  | { readonly op: 'blob'; readonly container: Container; readonly perElement: number; readonly hasFieldTtls?: boolean }
  /** A node of a list: one plain element or a listpack. */
  | { readonly op: 'listNode' }
  /** The name of a module's type. */
  | { readonly op: 'moduleId' }
  /** Values that a module wrote, up to their end mark. */
  | { readonly op: 'moduleValues' }

/** A kind of value. */
export interface Shape {
  readonly type: RedisType
  /** As OBJECT ENCODING names it; for a plain string it depends on the content. */
  readonly encoding: string
  readonly steps: readonly Step[]
}

const string: Step = { op: 'string' }
const name: Step = { op: 'name' }
const number: Step = { op: 'number' }
const skip = (bytes: number): Step => ({ op: 'skip', bytes })
const each = (...body: Step[]): Step => ({ op: 'times', body, counts: 'elements' })
const times = (counts: keyof ValueTally | undefined, ...body: Step[]): Step =>
  counts === undefined ? { op: 'times', body } : { op: 'times', body, counts }
const packed = (container: Container, perElement: number): Step => ({ op: 'blob', container, perElement })

function streamShape(version: 1 | 2 | 3): Shape {
  const pending = times('pending', skip(16), skip(8), number)
  const consumer = [string, skip(8), ...(version >= 3 ? [skip(8)] : []), times(undefined, skip(16))]
  const group = [string, number, number, ...(version >= 2 ? [number] : []), pending, times('consumers', ...consumer)]
  return {
    type: 'stream',
    encoding: 'stream',
    steps: [
      times(undefined, name, packed('listpack', 0)),
      { op: 'elements' },
      number,
      number,
      ...(version >= 2 ? [number, number, number, number, number] : []),
      times('groups', ...group),
    ],
  }
}

const module: Shape = { type: 'module', encoding: 'module', steps: [{ op: 'moduleId' }, { op: 'moduleValues' }] }
const shape = (type: RedisType, encoding: string, ...steps: Step[]): Shape => ({ type, encoding, steps })
const listpackWithTtls: Step = { op: 'blob', container: 'listpack', perElement: 3, hasFieldTtls: true }
const hashWithTtls = each({ op: 'fieldTtl' }, string, string)

const common: readonly (readonly [number, Shape])[] = [
  [0, shape('string', 'raw', { op: 'value' })],
  [1, shape('list', 'linkedlist', each(string))],
  [2, shape('set', 'hashtable', each(string))],
  [3, shape('zset', 'skiplist', each(string, { op: 'score' }))],
  [4, shape('hash', 'hashtable', each(string, string))],
  [5, shape('zset', 'skiplist', each(string, skip(8)))],
  [7, module],
  [9, shape('hash', 'zipmap', packed('zipmap', 2))],
  [10, shape('list', 'ziplist', packed('ziplist', 1))],
  [11, shape('set', 'intset', packed('intset', 1))],
  [12, shape('zset', 'ziplist', packed('ziplist', 2))],
  [13, shape('hash', 'ziplist', packed('ziplist', 2))],
  [14, shape('list', 'quicklist', times(undefined, packed('ziplist', 1)))],
  [15, streamShape(1)],
  [16, shape('hash', 'listpack', packed('listpack', 2))],
  [17, shape('zset', 'listpack', packed('listpack', 2))],
  [18, shape('list', 'quicklist', times(undefined, { op: 'listNode' }))],
  [19, streamShape(2)],
  [20, shape('set', 'listpack', packed('listpack', 1))],
  [21, streamShape(3)],
]

/** Redis' own types from 7.4 on: field TTLs first as absolute times (a release candidate), then relative to the least. */
const redisOnly: readonly (readonly [number, Shape])[] = [
  [22, shape('hash', 'hashtable', hashWithTtls)],
  [23, shape('hash', 'listpackex', listpackWithTtls)],
  [24, shape('hash', 'hashtable', skip(8), hashWithTtls)],
  [25, shape('hash', 'listpackex', skip(8), listpackWithTtls)],
]

/** Valkey took the same number 22 for something else. */
const valkeyOnly: readonly (readonly [number, Shape])[] = [
  [22, shape('hash', 'hashtable', each(string, string, { op: 'fieldTtl64' }))],
]

/** Shapes by type byte. */
export const redisShapes: readonly (Shape | undefined)[] = table(common, redisOnly)
export const valkeyShapes: readonly (Shape | undefined)[] = table(common, valkeyOnly)

function table(...lists: (readonly (readonly [number, Shape])[])[]): (Shape | undefined)[] {
  const shapes = new Array<Shape | undefined>(256).fill(undefined)
  for (const [code, one] of lists.flat()) shapes[code] = one
  return shapes
}

/** Items between keys, by opcode, that can be ignored. */
export const opcodeSteps: Readonly<Record<number, readonly Step[]>> = {
  244: [number, number, number],
  245: [name],
  247: [{ op: 'moduleId' }, number, number, { op: 'moduleValues' }],
  251: [number, number],
}

/** Opcode 243 means an import of slots to Valkey and metadata of the next key to Redis. */
export const valkeySlotImport: readonly Step[] = [name, times(undefined, number, number)]
export const redisKeyMetadata: readonly Step[] = [times(undefined, skip(4), { op: 'moduleValues' })]

/** Types of value known by name only: a dump can be read up to one of them. */
export const unreadable: Readonly<Record<number, string>> = {
  6: 'a module value of a Redis 4.0 candidate',
  26: 'a stream with idempotent producers (Redis 8.6)',
}
