import { AsyncLocalStorage } from 'node:async_hooks'
import type { Hold } from '../lease/hold.ts'
import type { LockProtocol } from '../lock/protocol.ts'

/*
 * Who owns a lock.
 *
 * A Java lock belongs to a thread. Node has no threads to name, and a task cannot be recognised by itself: marking the
 * current asynchronous context from inside `lock()` would leak the mark to the caller and from there to the tasks that
 * it starts next, and two tasks of `Promise.all` would become one owner and both enter. So an owner is only ever what
 * the caller made one:
 *
 * 1. an owner named in the call;
 * 2. inside the function of a `withLock` of the same lock: that lock's owner, so that nested calls re-enter;
 * 3. inside `asOwner(fn)`: one owner for everything that `fn` does;
 * 4. otherwise a new owner for each acquisition, represented by the handle that it returns.
 *
 * Scopes form a chain along the asynchronous context. A task that outlives the `withLock` that started it finds the
 * lock of that scope released and counts as a new owner.
 */

type OwnerScope =
  | { readonly kind: 'section'; readonly hold: Hold; readonly parent: OwnerScope | undefined }
  | { readonly kind: 'task'; readonly owner: string; readonly parent: OwnerScope | undefined }

/** The owner of a call: a known one may hold the lock already, a new one holds nothing. */
export interface ResolvedOwner {
  readonly owner: string
  readonly isKnown: boolean
  /** The hold of the section around the call. */
  readonly hold?: Hold
}

/** Finds and creates the owners of one process. */
export class Owners {
  readonly #instanceId: string
  readonly #scopes = new AsyncLocalStorage<OwnerScope | undefined>()
  #sequence = 0

  constructor(instanceId: string) {
    this.#instanceId = instanceId
  }

  /** The owner of a call about this lock. */
  resolve(protocol: LockProtocol, named: string | undefined): ResolvedOwner {
    return this.find(protocol, named) ?? { owner: this.#fresh(), isKnown: false }
  }

  /** The owner of a call, if it can be identified. */
  find(protocol: LockProtocol, named: string | undefined): ResolvedOwner | undefined {
    if (named !== undefined)
      return { owner: `${this.#instanceId}:${named.startsWith('#') ? '#' : ''}${named}`, isKnown: true }
    // A second permit is another permit, not the first one entered again.
    if (protocol.kind === 'permit') return undefined
    for (let scope = this.#scopes.getStore(); scope !== undefined; scope = scope.parent) {
      if (scope.kind === 'task') return { owner: scope.owner, isKnown: true }
      const { hold } = scope
      if (hold.state !== 'held' || hold.protocol.name !== protocol.name) continue
      // The fair lock and the plain one of a name are one lock.
      if (hold.protocol.leaseKey === protocol.leaseKey) return { owner: hold.owner, isKnown: true, hold }
      // A reader and a writer of one name are one owner: a writer may read.
      if (isReadWrite(hold.protocol) && isReadWrite(protocol)) return { owner: hold.owner, isKnown: true }
    }
    return undefined
  }

  /** Runs `fn` inside the section that a lock guards. */
  runInSection<T>(hold: Hold, fn: () => T): T {
    return this.#scopes.run({ kind: 'section', hold, parent: this.#scopes.getStore() }, fn)
  }

  /** Runs `fn` as one owner. */
  runAsOwner<T>(fn: () => T): T {
    return this.#scopes.run({ kind: 'task', owner: this.#fresh(), parent: undefined }, fn)
  }

  /** No name that a call gives: an owner who is called `7` is not the seventh without a name. */
  #fresh(): string {
    return `${this.#instanceId}:#${++this.#sequence}`
  }
}

function isReadWrite({ kind }: LockProtocol): boolean {
  return kind === 'read' || kind === 'write'
}
