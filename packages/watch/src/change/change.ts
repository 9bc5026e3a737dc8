/** One key that a write touched. */
export interface ChangedKey {
  /** The key's name. */
  readonly key: string
  /** The whole new value, if the write was a plain SET of a small string without a TTL. */
  readonly value?: Uint8Array
}

/** What a source saw: keys that changed together (in one command or transaction), or that anything may have changed. */
export type Change =
  | { readonly kind: 'keys'; readonly database: number; readonly keys: readonly ChangedKey[] }
  /** `database` is −1 for all databases. */
  | { readonly kind: 'flush'; readonly database: number; readonly reason: string }

/** The state of a change source. */
export type SourceState =
  /** `isOverdue`: the retry policy's attempts or time are used up, but retries continue. */
  | { readonly kind: 'connecting'; readonly reason: string; readonly isOverdue?: boolean }
  | { readonly kind: 'live' }
  /** Running, but changes may arrive late. */
  | { readonly kind: 'lagging'; readonly behindBytes: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'closed' }

/** A source of changes that a hub or a sidecar runs. */
export interface ChangeSource {
  readonly state: SourceState
  start(): void
  close(): Promise<void>
}

/** Receives what a source reports. */
export interface ChangeListener {
  onChange(change: Change): void
  onState?(state: SourceState): void
  /** A problem that the source survives; the error says what the source does about it. */
  onProblem?(error: Error): void
}
