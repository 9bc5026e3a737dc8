import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import { CommandLink, parseInfo } from '../connect/command-link.ts'
import type { ServerAddress } from '../connect/server-address.ts'
import { WatchError } from '../errors.ts'

/** What the poll needs of the stream's options. */
export interface MasterPollOptions {
  readonly address: ServerAddress
  readonly pollMs: number
  readonly leaseMs: number
  readonly allowMinReplicas: boolean
  readonly allowSentinel: boolean
  readonly clock: Clock
  readonly timers: Timers
}

/** Asks a master for its offset on a connection apart from the stream, and knows how far behind the stream is. */
export class MasterPoll {
  readonly #options: MasterPollOptions
  readonly #onChange: () => void
  #link: CommandLink | undefined
  #timer: TimerHandle | undefined
  #isAsking = false
  #answeredSentAt = Number.NEGATIVE_INFINITY
  #caughtUpSentAt = Number.NEGATIVE_INFINITY
  #masterOffset = 0
  #ownOffset = 0
  /** Polls whose offset the stream has not reached yet: offset and when it was asked for. */
  readonly #open: { readonly offset: number; readonly sentAt: number }[] = []

  constructor(options: MasterPollOptions, onChange: () => void) {
    this.#options = options
    this.#onChange = onChange
  }

  get behindBytes(): number {
    return Math.max(0, this.#masterOffset - this.#ownOffset)
  }

  /** Whether an answer came within the lease. */
  get isFresh(): boolean {
    return this.#options.clock.now() - this.#answeredSentAt <= this.#options.leaseMs
  }

  /** When the newest poll was sent whose offset the stream has reached. */
  get caughtUpSentAt(): number {
    return this.#caughtUpSentAt
  }

  start(): void {
    this.#timer = this.#options.timers.setInterval(() => void this.#ask(), this.#options.pollMs)
    void this.#ask()
  }

  close(): void {
    this.#timer?.cancel()
    this.#link?.close()
  }

  /** The stream has this much. */
  reached(offset: number): void {
    this.#ownOffset = offset
    while (this.#open.length > 0 && this.#open[0]!.offset <= offset) this.#caughtUpSentAt = this.#open.shift()!.sentAt
  }

  /** Throws where reading the stream would mislead the master's own safety. */
  async checkMaster(): Promise<void> {
    const info = parseInfo(String(await this.#connected().send('INFO', 'replication')))
    if (info.has('min_slaves_good_slaves') && !this.#options.allowMinReplicas) {
      throw new WatchError(
        'FB_WATCH_MIN_REPLICAS',
        'the master has min-replicas-to-write set and would count this stream as a replica with the data; use another watcher, or set allowMinReplicas',
        { isFatal: true },
      )
    }
    if (this.#options.allowSentinel) return
    const clients = String(
      await this.#connected()
        .send('CLIENT', 'LIST')
        .catch(() => ''),
    )
    if (/ name=sentinel-/.test(clients)) {
      throw new WatchError(
        'FB_WATCH_SENTINEL',
        'a Sentinel watches this master and would list this stream as a replica that it cannot reach; use another watcher, or set allowSentinel',
        { isFatal: true },
      )
    }
  }

  #connected(): CommandLink {
    if (this.#link === undefined || this.#link.isBroken) this.#link = new CommandLink(this.#options.address)
    return this.#link
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) {
      this.#onChange()
      return
    }
    this.#isAsking = true
    const sentAt = this.#options.clock.now()
    try {
      const info = parseInfo(String(await this.#connected().send('INFO', 'replication')))
      this.#answeredSentAt = sentAt
      this.#masterOffset = Number(info.get('master_repl_offset') ?? 0)
      this.#open.push({ offset: this.#masterOffset, sentAt })
      if (this.#open.length > 10_000) this.#open.shift()
      this.reached(this.#ownOffset)
    } catch {
      // The next poll opens a new connection; until one is answered, `isFresh` says it.
    } finally {
      this.#isAsking = false
      this.#onChange()
    }
  }
}
