import type { LockProtocol } from '../lock/protocol.ts'
import type { Waiter } from './waiter.ts'
import type { Listening, WakeChannels } from './wake-channels.ts'

/*
 * The tasks of this process that wait for one lock, first come first served.
 *
 * If a message wakes one waiter (`wakes: 'one'`), only the first in the queue talks to Redis: twenty waiting tasks cost
 * one attempt per release, not twenty. A waiter that leaves the front passes the duty on: after acquiring an exclusive
 * lock the next sleeps until it is notified or the new lease has expired; otherwise it tries at once, because the one
 * that left may have been woken without using it.
 *
 * If a message names its waiter (`wakes: 'owner'`, the fair lock), each waiter is in Redis' queue itself, and the queue
 * here only finds it by name.
 */

/** A local queue of waiters with its subscription. */
export class WaitLine {
  readonly protocol: LockProtocol
  readonly #channels: WakeChannels
  #listening: Listening
  /** In order of arrival; a Set keeps it and removes anywhere in constant time. */
  readonly #waiters = new Set<Waiter>()

  constructor(protocol: LockProtocol, channels: WakeChannels) {
    this.protocol = protocol
    this.#channels = channels
    this.#listening = this.#listen()
  }

  /** Resolves once the subscription is confirmed; after a failure the next call tries again. */
  async ready(): Promise<void> {
    const listening = this.#listening
    try {
      await listening.ready
    } catch (error) {
      if (this.#listening === listening) {
        listening.end()
        this.#listening = this.#listen()
        // The next caller learns of its failure.
        this.#listening.ready.catch(() => {})
      }
      throw error
    }
  }

  get size(): number {
    return this.#waiters.size
  }

  get first(): Waiter | undefined {
    return this.#waiters.values().next().value
  }

  waiters(): Iterable<Waiter> {
    return this.#waiters
  }

  join(waiter: Waiter): void {
    this.#waiters.add(waiter)
  }

  /** True if this waiter is one that talks to Redis. */
  looks(waiter: Waiter): boolean {
    return this.protocol.wakes === 'owner' || this.first === waiter
  }

  /** Removes a waiter; `leaseMs` is given if it leaves with the lock. */
  leave(waiter: Waiter, leaseMs?: number): void {
    const wasFirst = this.first === waiter
    if (!this.#waiters.delete(waiter) || !wasFirst || this.protocol.wakes === 'owner') return
    if (leaseMs === undefined || this.protocol.isShared) this.first?.look()
    else this.first?.lookWithin(leaseMs)
  }

  /** The waiter that a task of this process can hand the lock to: the first, unless it is currently trying itself. */
  get heir(): Waiter | undefined {
    const { first } = this
    return first?.canBeHanded === true ? first : undefined
  }

  close(): void {
    this.#listening.end()
  }

  #listen(): Listening {
    return this.#channels.listen(this.protocol.channel, (message) => this.#onMessage(message))
  }

  #onMessage(message: string | undefined): void {
    if (this.protocol.wakes === 'one') {
      this.first?.look()
      return
    }
    for (const waiter of this.#waiters) if (message === undefined || message === waiter.owner) waiter.look()
  }
}
