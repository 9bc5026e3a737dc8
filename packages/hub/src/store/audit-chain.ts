import { createHash } from 'node:crypto'
import type { AuditEntry, AuditHead } from '@firebreak/core'

/** An entry with its place in the chain. */
export type ChainedEntry = AuditEntry & Required<Pick<AuditEntry, 'seq' | 'previous' | 'hash'>>

/**
 * The audit as a chain: every entry has a number and a hash (SHA-256) over itself and the previous entry's hash, and
 * the store keeps the number and hash of the newest separately. An altered entry no longer matches its hash; one that
 * is removed, added or moved breaks a link or misses the head. Anyone who can write to the store can also compute a
 * whole new chain: to detect that, keep the head that `firebreak audit verify` prints elsewhere, and pass it to a later
 * one (`--since`).
 */
export function chainEntry(head: AuditHead | undefined, entry: AuditEntry): ChainedEntry {
  const { at } = entry
  // As every store returns them: a lone surrogate or U+0000 would come back as something else and look altered.
  const [who, what] = [plain(entry.who), plain(entry.what)]
  const [before, after] = [entry.before, entry.after].map(
    (value) => JSON.parse(JSON.stringify(value ?? null)) as unknown,
  )
  const link = { seq: (head?.seq ?? 0) + 1, previous: head?.hash ?? '' }
  const whole = { at, who, what, before, after, ...link }
  return { ...whole, hash: digest(whole) }
}

/** The head of a chain as text, for stores and for users to note down. */
export function formatHead({ seq, hash }: AuditHead): string {
  return `${seq}:${hash}`
}

/** Undefined if the text is not a head. */
export function parseHead(text: string | null | undefined): AuditHead | undefined {
  const match = /^(\d{1,15}):([0-9a-f]{64})$/.exec(text ?? '')
  return match === null ? undefined : { seq: Number(match[1]), hash: match[2]! }
}

/** A fault at one place of the chain. */
export interface AuditFault {
  readonly kind: 'altered' | 'missing' | 'out-of-order' | 'unchained' | 'head'
  /** The entry concerned; 0 if it has no number. */
  readonly seq: number
  readonly text: string
}

export interface AuditCheckOptions {
  /** The store's head; undefined if it has none. */
  readonly head: AuditHead | undefined
  /** How many entries the store keeps: if it has fewer, none may be missing at the old end. */
  readonly kept: number
  /** A head that was noted earlier: it must still be in the chain. */
  readonly since?: AuditHead | undefined
}

/** Further ones are only counted. */
const maxFaults = 100

/** Walks a chain from its newest entry to its oldest, in constant memory. */
export class AuditCheck {
  readonly #options: AuditCheckOptions
  readonly #faults: AuditFault[] = []
  /** The expected next older entry. */
  #next: AuditHead
  #count = 0
  #unchained = 0
  #faultCount = 0
  #isSinceSeen = false

  constructor(options: AuditCheckOptions) {
    this.#options = options
    this.#next = options.head ?? { seq: 0, hash: '' }
  }

  /** Takes the next older entry. */
  add(entry: AuditEntry): void {
    this.#count++
    if (!isChained(entry)) {
      this.#unchained++
      return
    }
    const { seq, previous, hash } = entry
    if (this.#unchained > 0) {
      this.#fault('unchained', seq, `${this.#unchained} entries without a hash follow entry ${seq}`)
      this.#unchained = 0
    }
    if (digest(entry) !== hash) this.#fault('altered', seq, `entry ${seq} does not match its hash`)
    const { since } = this.#options
    if (since?.seq === seq) {
      this.#isSinceSeen = true
      if (since.hash !== hash) this.#fault('head', seq, `entry ${seq} is not the one given`)
    }
    const expected = this.#next
    if (seq > expected.seq) {
      this.#fault('out-of-order', seq, `entry ${seq} is in place of entry ${expected.seq}`)
      return
    }
    if (seq < expected.seq) this.#fault('missing', expected.seq, missing(seq + 1, expected.seq))
    else if (hash !== expected.hash) this.#fault('altered', seq, `entry ${seq} is not the next one in the chain`)
    this.#next = { seq: seq - 1, hash: previous }
  }

  /** All entries were taken. */
  end(): AuditVerdict {
    const { head, kept, since } = this.#options
    const { seq: oldest } = this.#next
    const isTrimmed = oldest > 0 && this.#count >= kept
    if (oldest > 0 && !isTrimmed) this.#fault('missing', oldest, missing(1, oldest))
    if (this.#unchained > 0 && oldest > 0) {
      this.#fault('unchained', 0, `${this.#unchained} entries have no hash, although the chain is older`)
    }
    if (since !== undefined && !this.#isSinceSeen && !(isTrimmed && since.seq <= oldest)) {
      this.#fault('head', since.seq, `entry ${since.seq}, which was given, is not in the chain`)
    }
    return {
      head,
      count: this.#count,
      unchained: this.#unchained,
      trimmed: isTrimmed ? oldest : 0,
      faults: this.#faults,
      faultCount: this.#faultCount,
    }
  }

  #fault(kind: AuditFault['kind'], seq: number, text: string): void {
    this.#faultCount++
    if (this.#faults.length < maxFaults) this.#faults.push({ kind, seq, text })
  }
}

export interface AuditVerdict {
  readonly head: AuditHead | undefined
  /** Number of entries checked. */
  readonly count: number
  /** Entries at the old end that a version without a chain wrote. */
  readonly unchained: number
  /** Entries at the old end that the store dropped because it keeps no more. */
  readonly trimmed: number
  /** The first hundred. */
  readonly faults: readonly AuditFault[]
  readonly faultCount: number
}

function isChained(entry: AuditEntry): entry is ChainedEntry {
  const { seq, previous, hash } = entry
  return typeof seq === 'number' && typeof previous === 'string' && typeof hash === 'string'
}

function digest({ seq, previous, at, who, what, before, after }: Omit<ChainedEntry, 'hash'>): string {
  return createHash('sha256')
    .update(JSON.stringify([seq, previous, at, who, what, before, after]))
    .digest('hex')
}

function missing(first: number, last: number): string {
  return first === last ? `entry ${first} is missing` : `entries ${first} to ${last} are missing`
}

function plain(text: string): string {
  return text.toWellFormed().replaceAll('\u0000', '\ufffd')
}
