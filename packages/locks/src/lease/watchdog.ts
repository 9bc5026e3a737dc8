import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import type { Redis } from '@firebreak/redis'
import type { LossReason } from '../errors.ts'
import type { Hold } from './hold.ts'
import { renewOne, renewScript } from './renew-one.ts'

/** What the watchdog needs. */
export interface WatchdogOptions {
  readonly leaseMs: number
  readonly renewBatch: number
  readonly clock: Clock
  readonly timers: Timers
}

/*
 * One timer for all locks of a process.
 *
 * It is set to the next thing that can happen: a renewal round, a retry of one that failed, or the earliest deadline.
 * Rounds are on a grid of a third of the lease (of the shortest one, if they differ) and renew every lock, however
 * young, so that a thousand locks taken at a thousand moments still share their scripts. Releasing a lock does not
 * change the timer, which may then fire for nothing.
 *
 * A deadline is counted on the steady clock from before the request was sent, so it passes here before it passes in
 * Redis. At the deadline the lock is lost, whatever Redis says later. A process that was suspended finds the timer due
 * when it resumes; `Hold.isHeldAt` does not even need that.
 */

/** Renews leases and declares locks lost. */
export class Watchdog {
  readonly #redis: Redis
  readonly #options: WatchdogOptions
  readonly #onLost: (hold: Hold, reason: LossReason) => void
  /** Unordered; each knows its index, so that it is removed without a search. */
  readonly #holds: Hold[] = []
  #timer: TimerHandle | undefined
  #timerAt = Number.POSITIVE_INFINITY
  #nextRoundAt: number
  #shortestMs: number
  #isClosed = false
  /** Scripts sent, for the metrics. */
  renewals = 0
  /** Scripts that failed, for the metrics. */
  renewalErrors = 0

  constructor(redis: Redis, options: WatchdogOptions, onLost: (hold: Hold, reason: LossReason) => void) {
    this.#redis = redis
    this.#options = options
    this.#onLost = onLost
    this.#shortestMs = options.leaseMs
    this.#nextRoundAt = options.clock.now() + this.#periodMs
  }

  /** A third of the shortest renewed lease, as of the last round; a shorter one counts when it arrives. */
  get #periodMs(): number {
    return this.#shortestMs / 3
  }

  /** Every held lock. */
  holds(): readonly Hold[] {
    return this.#holds
  }

  add(hold: Hold): void {
    // Idle until now: restart the grid.
    if (this.#holds.length === 0 && this.#nextRoundAt <= hold.acquiredAt) {
      this.#nextRoundAt = hold.acquiredAt + this.#periodMs
    }
    hold.place = this.#holds.push(hold) - 1
    this.#expect(hold, hold.acquiredAt)
  }

  /** Gives a hold another lease, from now on; false if it is no longer its owner's. */
  async extend(hold: Hold, leaseMs: number): Promise<boolean> {
    const { protocol, owner } = hold
    const sentAt = this.#options.clock.now()
    const isOurs = await renewOne(this.#redis, protocol, { owner, leaseMs })
    // Released or lost meanwhile: the answer no longer matters.
    if (hold.state !== 'held') return false
    if (!isOurs) {
      this.#lose(hold, 'taken')
      return false
    }
    hold.leaseMs = leaseMs
    hold.deadline = sentAt + leaseMs
    const now = this.#options.clock.now()
    this.#expect(hold, now)
    return hold.isHeldAt(now)
  }

  #expect(hold: Hold, now: number): void {
    if (!hold.isRenewed) {
      this.#arm(hold.deadline)
      return
    }
    if (hold.leaseMs < this.#shortestMs) {
      this.#shortestMs = hold.leaseMs
      this.#nextRoundAt = Math.min(this.#nextRoundAt, now + this.#periodMs)
    }
    this.#arm(Math.min(this.#nextRoundAt, hold.deadline))
  }

  remove(hold: Hold): void {
    if (this.#holds[hold.place] !== hold) return
    const last = this.#holds.pop()!
    if (last === hold) return
    this.#holds[hold.place] = last
    last.place = hold.place
  }

  /** Renews everything now: Redis may have forgotten us before a reconnect. */
  verify(): void {
    if (this.#isClosed || this.#holds.length === 0) return
    this.#nextRoundAt = this.#options.clock.now()
    this.#tick()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
  }

  #arm(at: number): void {
    if (at >= this.#timerAt || this.#isClosed) return
    this.#timer?.cancel()
    this.#timerAt = at
    this.#timer = this.#options.timers.setTimeout(
      () => this.#tick(),
      Math.max(0, Math.ceil(at - this.#options.clock.now())),
    )
  }

  #tick(): void {
    const now = this.#options.clock.now()
    this.#timer?.cancel()
    this.#timerAt = Number.POSITIVE_INFINITY
    let earliestDeadline = Number.POSITIVE_INFINITY
    for (const hold of [...this.#holds]) {
      if (now >= hold.deadline) this.#lose(hold, 'expired')
      else earliestDeadline = Math.min(earliestDeadline, hold.deadline)
    }
    const renewed = this.#holds.filter((hold) => hold.isRenewed)
    if (renewed.length > 0 && now >= this.#nextRoundAt) {
      this.#shortestMs = this.#options.leaseMs
      for (const { leaseMs } of renewed) if (leaseMs < this.#shortestMs) this.#shortestMs = leaseMs
      this.#nextRoundAt = now + this.#periodMs
      void this.#round(renewed)
    }
    this.#arm(renewed.length > 0 ? Math.min(earliestDeadline, this.#nextRoundAt) : earliestDeadline)
  }

  async #round(holds: readonly Hold[]): Promise<void> {
    const results = await Promise.all(this.#batches(holds).map((batch) => this.#renew(batch)))
    if (results.includes(false) && this.#holds.length > 0) {
      this.#nextRoundAt = Math.min(this.#nextRoundAt, this.#options.clock.now() + this.#periodMs / 10)
      this.#arm(this.#nextRoundAt)
    }
  }

  /** On a cluster the keys of a script share a slot. */
  #batches(holds: readonly Hold[]): Hold[][] {
    const groups = new Map<number, Hold[]>()
    const isCluster = this.#redis.topology === 'cluster'
    for (const hold of holds) {
      const place = isCluster ? keySlot(hold.protocol.leaseKey) : 0
      const group = groups.get(place)
      if (group === undefined) groups.set(place, [hold])
      else group.push(hold)
    }
    const size = this.#options.renewBatch
    return [...groups.values()].flatMap((group) =>
      Array.from({ length: Math.ceil(group.length / size) }, (_, index) =>
        group.slice(index * size, (index + 1) * size),
      ),
    )
  }

  /** Renews one batch; false if Redis did not answer. */
  async #renew(batch: readonly Hold[]): Promise<boolean> {
    const sentAt = this.#options.clock.now()
    const keys = batch.map(({ protocol }) => protocol.leaseKey)
    const leases = batch.map(({ leaseMs }) => leaseMs)
    const args = batch.flatMap(({ protocol, owner }, index) => [leases[index]!, `${protocol.leaseShape}:${owner}`])
    this.renewals++
    try {
      const answers = (await this.#redis.run(renewScript, keys, args)) as number[]
      for (const [index, hold] of batch.entries()) {
        // Released or lost during the renewal: the answer no longer matters.
        if (hold.state !== 'held') continue
        if (answers[index] !== 1) this.#lose(hold, 'taken')
        // A lease that was changed meanwhile has its own deadline.
        else if (hold.leaseMs === leases[index]) hold.deadline = Math.max(hold.deadline, sentAt + hold.leaseMs)
      }
      return true
    } catch {
      this.renewalErrors++
      return false
    }
  }

  #lose(hold: Hold, reason: LossReason): void {
    this.remove(hold)
    this.#onLost(hold, reason)
  }
}
