/** One key that a write touched. */
export interface ChangedKey {
  /** The key's name. */
  readonly key: string
  /** The whole new value, where the write was a plain SET of a small string without a TTL. */
  readonly value?: Uint8Array
}

/** What a source saw: keys that changed together (one command or one transaction), or that anything may have changed. */
export type Change =
  | { readonly kind: 'keys'; readonly database: number; readonly keys: readonly ChangedKey[] }
  /** `database` is −1 for all of them. */
  | { readonly kind: 'flush'; readonly database: number; readonly reason: string }

/** How a change source stands. */
export type SourceState =
  | { readonly kind: 'connecting'; readonly reason: string }
  | { readonly kind: 'live' }
  /** It runs, but what it says may be late. */
  | { readonly kind: 'lagging'; readonly behindBytes: number }
  | { readonly kind: 'failed'; readonly reason: string }
  | { readonly kind: 'closed' }

/** A source of changes that a hub or a sidecar runs. */
export interface ChangeSource {
  readonly state: SourceState
  start(): void
  close(): Promise<void>
}

/** Who is told. */
export interface ChangeListener {
  onChange(change: Change): void
  onState?(state: SourceState): void
  /** A problem that the source survives; it says itself what it does about it. */
  onProblem?(error: Error): void
}
