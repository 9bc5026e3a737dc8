import { LockQueueFullError, LocksClosedError } from '../errors.ts'
import { Hold } from '../lease/hold.ts'
import type { LockProtocol } from '../lock/protocol.ts'
import type { ResolvedLocksOptions } from '../options.ts'
import type { GiveUp } from '../wait/give-up.ts'
import { WaitLine } from '../wait/wait-line.ts'
import { Waiter } from '../wait/waiter.ts'
import { WaiterHeartbeat } from '../wait/waiter-heartbeat.ts'
import type { WakeChannels } from '../wait/wake-channels.ts'
import type { AcquireRequest } from './acquire-request.ts'

/** One task that waits, for snapshots. */
export interface WaitingTask {
  readonly protocol: LockProtocol
  readonly owner: string
  readonly since: number
}

/** What the room needs from the engine. */
export interface WaitingRoomCalls {
  /** One attempt; returns the milliseconds to wait if the lock is busy. */
  try(protocol: LockProtocol, request: AcquireRequest, giveUp: GiveUp | undefined): Promise<Hold | number | 'gave-up'>
  /** Repeats an idempotent call over transient errors. */
  persist<T>(call: () => Promise<T>, giveUp: GiveUp | undefined): Promise<T>
}

/**
 * Where the tasks of a process wait: a queue for each lock, opened by the first task and closed by the last. A task
 * subscribes, tries once the subscription is confirmed, and then sleeps until it is notified, is handed the lock, or
 * the holder's lease has expired.
 */
export class WaitingRoom {
  readonly #options: ResolvedLocksOptions
  readonly #channels: WakeChannels
  readonly #calls: WaitingRoomCalls
  readonly #heartbeat: WaiterHeartbeat
  readonly #lines = new Map<string, WaitLine>()
  readonly #tasks = new Set<WaitingTask>()
  #isClosed = false

  constructor(options: ResolvedLocksOptions, channels: WakeChannels, calls: WaitingRoomCalls) {
    this.#options = options
    this.#channels = channels
    this.#calls = calls
    this.#heartbeat = new WaiterHeartbeat(options.waiterTtlMs / 3, options.timers)
  }

  tasks(): ReadonlySet<WaitingTask> {
    return this.#tasks
  }

  hasWaiters(protocol: LockProtocol): boolean {
    return this.#lines.size > 0 && (this.#lines.get(protocol.id)?.size ?? 0) > 0
  }

  /** The waiter that a task of this process can hand the lock to. */
  heirOf(protocol: LockProtocol): Waiter | undefined {
    return this.#lines.size === 0 ? undefined : this.#lines.get(protocol.id)?.heir
  }

  /** Waits in line; undefined if it gave up. */
  async wait(
    protocol: LockProtocol,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
    since: number,
  ): Promise<Hold | undefined> {
    const { maxWaiting, timers } = this.#options
    if (this.#tasks.size >= maxWaiting) throw new LockQueueFullError(protocol.name, maxWaiting)
    const line = this.#openLine(protocol)
    const waiter = new Waiter(request, timers)
    const task: WaitingTask = { protocol, owner: request.owner, since }
    giveUp?.onGiveUp(() => waiter.giveUp())
    line.join(waiter)
    this.#tasks.add(task)
    let hold: Hold | undefined
    try {
      hold = await this.#waitInLine(line, waiter, request, giveUp)
    } catch (error) {
      // A subscription still in progress fails with its connection.
      throw this.#isClosed ? new LocksClosedError() : error
    } finally {
      this.#tasks.delete(task)
      line.leave(waiter, hold?.leaseMs)
      if (line.size === 0) this.#closeLine(line)
    }
    if (hold === undefined && this.#isClosed) throw new LocksClosedError()
    return hold
  }

  /** For very many locks that are rarely contended: no subscription, pauses that double, with jitter. */
  async spin(protocol: LockProtocol, request: AcquireRequest, giveUp: GiveUp | undefined): Promise<Hold | undefined> {
    const waiter = new Waiter(request, this.#options.timers)
    giveUp?.onGiveUp(() => waiter.giveUp())
    for (let pauseMs = 1; ; pauseMs = Math.min(pauseMs * 2, 128)) {
      if ((await waiter.pause(pauseMs * (0.5 + this.#options.runtime.random() / 2))) === 'gave-up') return undefined
      if (this.#isClosed) throw new LocksClosedError()
      const result = await this.#calls.try(protocol, request, giveUp)
      if (result === 'gave-up') return undefined
      if (result instanceof Hold) return result
    }
  }

  close(): void {
    this.#isClosed = true
    this.#heartbeat.close()
    for (const line of this.#lines.values()) for (const waiter of line.waiters()) waiter.giveUp()
  }

  async #waitInLine(
    line: WaitLine,
    waiter: Waiter,
    request: AcquireRequest,
    giveUp: GiveUp | undefined,
  ): Promise<Hold | undefined> {
    const ready = this.#calls.persist(() => line.ready(), giveUp)
    if ((await (giveUp === undefined ? ready : giveUp.race(ready, () => {}))) === 'gave-up') return undefined
    // Whatever happened before the subscription was confirmed was missed: check once.
    if (line.looks(waiter)) waiter.look()
    let pauseMs = Number.POSITIVE_INFINITY
    for (;;) {
      const reason = await waiter.pause(pauseMs)
      if (reason === 'gave-up') return undefined
      if (reason === 'handed') return waiter.handed
      const result = await this.#calls.try(line.protocol, request, giveUp)
      if (result === 'gave-up') return undefined
      if (result instanceof Hold) return result
      // A holder without an expiry was written by hand; check occasionally.
      pauseMs = Math.min(result, this.#options.leaseMs)
    }
  }

  #openLine(protocol: LockProtocol): WaitLine {
    const known = this.#lines.get(protocol.id)
    if (known !== undefined) return known
    const line = new WaitLine(protocol, this.#channels)
    this.#lines.set(protocol.id, line)
    if (protocol.keepWaiting !== undefined) this.#heartbeat.add(line)
    return line
  }

  #closeLine(line: WaitLine): void {
    if (this.#lines.get(line.protocol.id) !== line) return
    this.#lines.delete(line.protocol.id)
    this.#heartbeat.remove(line)
    line.close()
  }
}
