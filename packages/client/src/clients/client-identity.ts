/** The identity that a client's connections read as: what is read as one identity is never served to another. */
export interface ClientIdentity {
  /**
   * Where it connects, as configured: of a cluster its start nodes, of a Sentinel group its name and its Sentinels. The
   * servers that it finds there change.
   */
  readonly place: string
  readonly username?: string | null | undefined
  readonly password?: string | null | undefined
  /** Provides credentials that are not written in the options. */
  readonly provider?: object | undefined
}

/** The start nodes of a cluster, or the Sentinels of a group, in any order. */
export function placeOfMany(addresses: readonly string[]): string {
  return [...addresses].sort().join(' ')
}

const lonely = new WeakMap<object, string>()
let lonelyCount = 0

/** The place of a client that does not show where it connects: no other client has it. */
export function placeOfItsOwn(client: object): string {
  const known = lonely.get(client)
  if (known !== undefined) return known
  const place = `client ${lonelyCount++}`
  lonely.set(client, place)
  return place
}

export function isSameIdentity(a: ClientIdentity, b: ClientIdentity): boolean {
  return (
    a.place === b.place &&
    (a.username || '') === (b.username || '') &&
    (a.password || '') === (b.password || '') &&
    a.provider === b.provider
  )
}
