/** Until when a watcher is known alive; nothing that it guards is served after that. */
export interface Lease {
  aliveUntil: number
}

/** The lease of what no watcher guards: its TTL alone ends it. */
export const endlessLease: Lease = Object.freeze({ aliveUntil: Number.POSITIVE_INFINITY })
