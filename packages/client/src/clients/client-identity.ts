/** The identity that a client's connections read as: what is read as one identity is never served to another. */
export interface ClientIdentity {
  /** Where it connects, as configured; empty for a cluster or Sentinel group, whose addresses change. */
  readonly place: string
  readonly username?: string | null | undefined
  readonly password?: string | null | undefined
  /** Provides credentials that are not written in the options. */
  readonly provider?: object | undefined
}

export function isSameIdentity(a: ClientIdentity, b: ClientIdentity): boolean {
  return (
    a.place === b.place &&
    (a.username || '') === (b.username || '') &&
    (a.password || '') === (b.password || '') &&
    a.provider === b.provider
  )
}
