/** As whom a connection of a client reads: what is read as one identity is for nobody else. */
export interface ClientIdentity {
  /** Where it goes, as configured; of a cluster or a Sentinel group, which move, nothing. */
  readonly place: string
  readonly username?: string | null | undefined
  readonly password?: string | null | undefined
  /** What is asked for credentials, where they are not written down. */
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
