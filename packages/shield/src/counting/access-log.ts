import { keyName } from '@firebreak/core'
import { AccessCounter, KeyHasher, type TallyVisitor } from '@firebreak/core/heat'
import type { Rule } from '@firebreak/core/rules'
import { AccessBuffer } from './access-buffer.ts'
import { ByteAccesses } from './byte-accesses.ts'
import { type Crossing, FastPath } from './fast-path.ts'
import { Redactor } from './redactor.ts'

/** What an access log needs. */
export interface AccessLogOptions {
  readonly redisClusterId: string
  readonly serviceId: string
  readonly maxKeys: number
  readonly redactKey: ((key: string) => string) | undefined
  /** The secret seed of the keys' hashes. */
  readonly seed: number
  /** One key is growing fast: a report is wanted at once. */
  readonly onBurst: () => void
}

/** Gets the counts of an interval, key by key, each under its outside name. */
export interface AccessVisitor {
  byName(key: string, count: number, writes: number, bytes: number): void
  /** Like `byName`, for the key in `bytes` from `start` to `end`. */
  byBytes(bytes: Uint8Array, start: number, end: number, count: number, writes: number, byteCount: number): void
  /** Reads of some keys, as entries of a report in `bytes` from `start` to `end`; only where `takesPieces`. */
  byPiece(bytes: Uint8Array, start: number, end: number, keys: number): void
  /** True if keys need not be passed one by one, nor cold ones before the next interval ends. */
  readonly takesPieces: boolean
  /** A key was pushed over a rule's threshold by this process alone. */
  onCrossing(name: string, outside: string, crossing: Crossing): void
}

/** The counts of an interval, for all keys together. */
export interface DrainedTotals {
  readonly count: number
  readonly writes: number
}

const nothing: readonly string[] = []
const asItIs = (name: string) => name

/**
 * The accesses of one Redis in the current interval. A client counts keys by name because it is given strings; a proxy
 * counts them by their bytes. Evaluates the rules on these counts and translates keys to their names outside this
 * process.
 */
export class AccessLog {
  readonly #counter: AccessCounter
  readonly #names: AccessBuffer
  readonly #fastPath: FastPath
  readonly #redactor: Redactor | undefined
  readonly #maxKeys: number
  readonly #onBurst: () => void
  #byBytes: ByteAccesses | undefined
  /** Hashes the bytes of keys. */
  readonly hasher: KeyHasher

  constructor(options: AccessLogOptions) {
    const { maxKeys, serviceId, redisClusterId, redactKey, seed, onBurst } = options
    this.#counter = new AccessCounter({ maxKeys })
    this.#fastPath = new FastPath(serviceId, redisClusterId)
    this.#names = new AccessBuffer(this.#counter, this.#fastPath, onBurst)
    this.hasher = new KeyHasher(seed)
    this.#maxKeys = maxKeys
    this.#onBurst = onBurst
    this.#redactor = redactKey === undefined ? undefined : new Redactor(redactKey)
  }

  /** Accesses of the current interval. */
  get countSoFar(): number {
    return this.#names.count + (this.#byBytes?.count ?? 0)
  }

  /** The accesses counted by the bytes of their keys. */
  get byBytes(): ByteAccesses {
    this.#byBytes ??= new ByteAccesses(this.#maxKeys, this.hasher, this.#fastPath, this.#onBurst)
    return this.#byBytes
  }

  /** Keys that got an outside name since the last call: the table may contain it. */
  takeNews(): readonly string[] {
    return this.#redactor?.takeNews() ?? nothing
  }

  /** Counts one access of a key by its name. */
  count(name: string, isWrite: boolean, bytes: number): void {
    this.#names.add(name, isWrite, bytes)
  }

  /** Counts reads of a hot key that were answered from memory. */
  addReads(key: Uint8Array, count: number): void {
    this.byBytes.addReads(key, count)
  }

  /** The hash that the accesses of a key are counted by. */
  hashOf(key: Uint8Array): number {
    return this.hasher.hash(key, 0, key.length)
  }

  /** Counts what was noted since the last call. */
  flush(): void {
    this.#names.flush()
    this.#byBytes?.flush()
  }

  setRules(rules: readonly Rule[]): void {
    this.#fastPath.setRules(rules)
  }

  /** True if keys have other names outside this process. */
  get isRedacting(): boolean {
    return this.#redactor !== undefined
  }

  /** The names that a key of the table has in this process. */
  inside(key: string): Iterable<string> {
    return this.#redactor?.inside(key) ?? [key]
  }

  /** The name that a key has outside this process. */
  outside(name: string): string {
    return this.#redactor?.outside(name) ?? name
  }

  /** Ends the interval. */
  drain(visitor: AccessVisitor, now: number): DrainedTotals {
    const redactor = this.#redactor
    let count = 0
    let writes = 0
    this.#names.flush()
    const names = this.#counter.swap()
    // Undefined only while an earlier interval is half read, which never happens here.
    if (names !== undefined) {
      const outside = redactor === undefined ? asItIs : (name: string) => redactor.outside(name)
      while (names.take(4096, (name, ...counts) => this.#visit(visitor, name, outside(name), now, ...counts)));
      count += names.totalCount
      writes += names.totalWrites
    }
    const fastPath = this.#fastPath
    const takesPieces = visitor.takesPieces && redactor === undefined
    const bytesVisitor: TallyVisitor = {
      onKey: (bytes, start, end, hash, keyCount, keyWrites, byteCount) => {
        count += keyCount
        writes += keyWrites
        if (redactor !== undefined) {
          const name = keyName(bytes.subarray(start, end))
          this.#visit(visitor, name, redactor.outside(name), now, keyCount, keyWrites, byteCount)
          return false
        }
        visitor.byBytes(bytes, start, end, keyCount, keyWrites, byteCount)
        if (!fastPath.concerns(keyCount, hash)) return false
        const name = keyName(bytes.subarray(start, end))
        const crossing = fastPath.observe(name, keyCount, keyWrites, now, hash)
        if (crossing !== undefined) visitor.onCrossing(name, name, crossing)
        return fastPath.isCandidate(hash)
      },
      onPiece: (bytes, start, end, keys, pieceCount) => {
        count += pieceCount
        visitor.byPiece(bytes, start, end, keys)
      },
    }
    this.#byBytes?.drain(bytesVisitor, takesPieces ? fastPath.candidateCount : 0)
    fastPath.sweep(now)
    this.#names.restart()
    this.#byBytes?.restart()
    return { count, writes }
  }

  #visit(
    visitor: AccessVisitor,
    name: string,
    outside: string,
    now: number,
    count: number,
    writes: number,
    bytes: number,
  ): void {
    visitor.byName(outside, count, writes, bytes)
    const crossing = this.#fastPath.observe(outside, count, writes, now)
    if (crossing !== undefined) visitor.onCrossing(name, outside, crossing)
  }
}
