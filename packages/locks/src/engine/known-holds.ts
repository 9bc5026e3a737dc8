import type { Hold } from '../lease/hold.ts'
import type { LockProtocol } from '../lock/protocol.ts'

/** What identifiable owners hold, and are about to hold, by lock and owner: for re-entry. */
export class KnownHolds {
  readonly #holds = new Map<string, Hold>()
  /** First acquisitions in progress. */
  readonly #pending = new Map<string, Promise<Hold | undefined>>()

  get(protocol: LockProtocol, owner: string): Hold | undefined {
    return this.#holds.get(keyOf(protocol, owner))
  }

  add(hold: Hold): void {
    if (hold.isKnown) this.#holds.set(keyOf(hold.protocol, hold.owner), hold)
  }

  remove(hold: Hold): void {
    if (!hold.isKnown) return
    const key = keyOf(hold.protocol, hold.owner)
    if (this.#holds.get(key) === hold) this.#holds.delete(key)
  }

  pendingOf(protocol: LockProtocol, owner: string): Promise<unknown> | undefined {
    return this.#pending.get(keyOf(protocol, owner))
  }

  /** Marks a first acquisition as pending until it has ended. */
  track(protocol: LockProtocol, owner: string, acquiring: Promise<Hold | undefined>): Promise<Hold | undefined> {
    const key = keyOf(protocol, owner)
    const tracked = acquiring.finally(() => this.#pending.delete(key))
    this.#pending.set(key, tracked)
    return tracked
  }
}

/** By the key in Redis: the fair lock and the plain one of a name are one lock. */
function keyOf({ leaseKey }: LockProtocol, owner: string): string {
  return `${leaseKey} ${owner}`
}
