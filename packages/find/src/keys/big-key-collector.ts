import { escapeKey } from './escape-key.ts'
import type { FoundKey, RedisType } from './found-key.ts'
import { type PrefixNode, PrefixTree, type PrefixTreeOptions } from './prefix-tree.ts'
import { TopList } from './top-list.ts'

/** Which keys count as big, and how many are kept. */
export interface BigKeyOptions {
  /** How many keys each list keeps. @default 20 */
  readonly top?: number
  /** Only keys that take at least this much memory. @default 0 */
  readonly minBytes?: number
  /** Only keys with at least this many elements. @default 0 */
  readonly minElements?: number
  /** Only keys of this type. */
  readonly type?: RedisType
  /** Only keys that match this glob, like SCAN's MATCH. */
  readonly matches?: (key: Buffer) => boolean
  /** Whether the candidates' `hasTtl` is meaningful. @default true */
  readonly isTtlKnown?: boolean
  /** How keys are grouped by prefix; false omits the tree. @default PrefixTree's own */
  readonly prefixes?: PrefixTreeOptions | false
}

/** A key as a finder sees it; `key` is only copied if it is kept. */
export interface BigKeyCandidate {
  readonly key: Buffer
  readonly type: RedisType
  readonly bytes: number
  readonly elements: number
  readonly hasTtl: boolean
}

/** Sums over all keys of one type. */
export interface TypeSummary {
  readonly type: RedisType
  readonly keys: number
  readonly bytes: number
  readonly elements: number
  /** Absent if it was not looked up. */
  readonly keysWithTtl?: number
  readonly byBytes: readonly FoundKey[]
  readonly byElements: readonly FoundKey[]
}

/** The biggest keys: overall, by type, by prefix. */
export interface BigKeys {
  readonly keys: readonly FoundKey[]
  readonly types: readonly TypeSummary[]
  readonly prefixes: PrefixNode | undefined
  readonly seen: number
}

interface TypeTotals {
  keys: number
  bytes: number
  elements: number
  keysWithTtl: number
  readonly byBytes: TopList<FoundKey>
  readonly byElements: TopList<FoundKey>
}

const nameOf = ({ key }: FoundKey) => key

/** Keeps the largest keys, overall and by type, by bytes and by elements, and sums by prefix. */
export class BigKeyCollector {
  readonly #options: BigKeyOptions
  readonly #top: number
  readonly #all: TopList<FoundKey>
  readonly #types = new Map<RedisType, TypeTotals>()
  readonly #prefixes: PrefixTree | undefined
  #seen = 0

  constructor(options: BigKeyOptions = {}) {
    this.#options = options
    this.#top = options.top ?? 20
    this.#all = new TopList(this.#top, nameOf)
    this.#prefixes = options.prefixes === false ? undefined : new PrefixTree(options.prefixes ?? {})
  }

  /** Keys counted so far. */
  get seen(): number {
    return this.#seen
  }

  /** Counts a key; `details`, for what is expensive to find out, is only called if the key is kept. */
  add<Candidate extends BigKeyCandidate>(
    candidate: Candidate,
    details: (candidate: Candidate) => Partial<FoundKey>,
  ): void {
    const { type, minBytes = 0, minElements = 0, matches } = this.#options
    if (type !== undefined && candidate.type !== type) return
    if (matches !== undefined && !matches(candidate.key)) return
    this.#seen++
    const totals = this.#types.get(candidate.type) ?? this.#addType(candidate.type)
    totals.keys++
    totals.bytes += candidate.bytes
    totals.elements += candidate.elements
    if (candidate.hasTtl) totals.keysWithTtl++
    this.#prefixes?.add(candidate.key, candidate.bytes, candidate.elements, candidate.hasTtl)
    if (candidate.bytes < minBytes || candidate.elements < minElements) return
    const isAmongAll = this.#all.admits(candidate.bytes)
    const isByBytes = totals.byBytes.admits(candidate.bytes)
    // A string is one element, so strings are not ranked by elements.
    const isByElements = candidate.type !== 'string' && totals.byElements.admits(candidate.elements)
    if (!isAmongAll && !isByBytes && !isByElements) return
    const found: FoundKey = {
      key: escapeKey(candidate.key),
      type: candidate.type,
      bytes: candidate.bytes,
      elements: candidate.elements,
      ...details(candidate),
    }
    this.#all.add(candidate.bytes, found)
    totals.byBytes.add(candidate.bytes, found)
    if (isByElements) totals.byElements.add(candidate.elements, found)
  }

  result(): BigKeys {
    const isTtlKnown = this.#options.isTtlKnown ?? true
    const types = [...this.#types].map(([type, { keys, bytes, elements, keysWithTtl, byBytes, byElements }]) => ({
      type,
      keys,
      bytes,
      elements,
      ...(isTtlKnown ? { keysWithTtl } : {}),
      byBytes: byBytes.sorted(),
      byElements: byElements.sorted(),
    }))
    types.sort((a, b) => b.bytes - a.bytes)
    return {
      keys: this.#all.sorted(),
      types,
      prefixes: this.#prefixes?.toJSON(undefined, isTtlKnown),
      seen: this.#seen,
    }
  }

  #addType(type: RedisType): TypeTotals {
    const totals: TypeTotals = {
      keys: 0,
      bytes: 0,
      elements: 0,
      keysWithTtl: 0,
      byBytes: new TopList(this.#top, nameOf),
      byElements: new TopList(this.#top, nameOf),
    }
    this.#types.set(type, totals)
    return totals
  }
}
