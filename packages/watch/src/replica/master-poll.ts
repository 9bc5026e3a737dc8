import type { Clock, TimerHandle, Timers } from '@firebreak/core'
import type { openRespClient } from '@firebreak/core/node'
import { parseInfo, type RedisTarget, type RespClient } from '@firebreak/core/resp'
import { WatchError } from '../errors.ts'

/** Reconnect to a master that has not answered for this long. */
const shortestWaitMs = 1000

/** The stream options that the poll needs. */
export interface MasterPollOptions {
  readonly address: RedisTarget
  readonly open: typeof openRespClient
  readonly pollMs: number
  readonly leaseMs: number
  readonly allowMinReplicas: boolean
  readonly allowSentinel: boolean
  readonly clock: Clock
  readonly timers: Timers
}

/** Asks a master for its offset on a separate connection, and knows how far behind the stream is. */
export class MasterPoll {
  readonly #options: MasterPollOptions
  readonly #onChange: () => void
  #client: RespClient | undefined
  #opening: Promise<RespClient> | undefined
  #isClosed = false
  #timer: TimerHandle | undefined
  #isAsking = false
  #answeredSentAt = Number.NEGATIVE_INFINITY
  #caughtUpSentAt = Number.NEGATIVE_INFINITY
  #masterOffset = 0
  #ownOffset = 0
  /** Polls whose offset the stream has not reached yet: the offset and when the poll was sent. */
  readonly #open: { readonly offset: number; readonly sentAt: number }[] = []

  constructor(options: MasterPollOptions, onChange: () => void) {
    this.#options = options
    this.#onChange = onChange
  }

  get behindBytes(): number {
    return Math.max(0, this.#masterOffset - this.#ownOffset)
  }

  /** Whether an answer arrived within the lease. */
  get isFresh(): boolean {
    return this.#options.clock.now() - this.#answeredSentAt <= this.#options.leaseMs
  }

  /** When we sent the newest poll whose offset the stream has reached. */
  get caughtUpSentAt(): number {
    return this.#caughtUpSentAt
  }

  start(): void {
    this.#timer = this.#options.timers.setInterval(() => void this.#ask(), this.#options.pollMs)
    void this.#ask()
  }

  close(): void {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#client?.close()
  }

  /** The stream has reached this offset. */
  reached(offset: number): void {
    this.#ownOffset = offset
    while (this.#open.length > 0 && this.#open[0]!.offset <= offset) this.#caughtUpSentAt = this.#open.shift()!.sentAt
  }

  /** Throws if reading the stream would undermine the master's own safety checks. */
  async checkMaster(): Promise<void> {
    const info = parseInfo(String(await this.#send('INFO', 'replication')))
    if (info.has('min_slaves_good_slaves') && !this.#options.allowMinReplicas) {
      throw new WatchError(
        'FB_WATCH_MIN_REPLICAS',
        'the master has min-replicas-to-write set and would count this stream as a replica that has the data; use another watcher, or set allowMinReplicas',
        { isFatal: true },
      )
    }
    if (this.#options.allowSentinel) return
    const clients = String(await this.#send('CLIENT', 'LIST').catch(() => ''))
    if (/ name=sentinel-/.test(clients)) {
      throw new WatchError(
        'FB_WATCH_SENTINEL',
        'a Sentinel watches this master and would list this stream as an unreachable replica; use another watcher, or set allowSentinel',
        { isFatal: true },
      )
    }
  }

  async #send(...args: string[]): Promise<unknown> {
    return (await this.#connected()).send(args)
  }

  /** The connection, reopened if it was lost; a poll and a check at the same time share one. */
  async #connected(): Promise<RespClient> {
    if (this.#client !== undefined && !this.#client.isClosed) return this.#client
    this.#opening ??= this.#openClient().finally(() => {
      this.#opening = undefined
    })
    return this.#opening
  }

  async #openClient(): Promise<RespClient> {
    const { address, open, leaseMs } = this.#options
    const waitMs = Math.max(shortestWaitMs, leaseMs * 3)
    const client = await open(address, {
      name: 'firebreak-watch',
      bulk: 'text',
      runtime: this.#options,
      connectTimeoutMs: waitMs,
      replyTimeoutMs: waitMs,
    })
    if (this.#isClosed) client.close()
    this.#client = client
    return client
  }

  async #ask(): Promise<void> {
    if (this.#isAsking) {
      this.#onChange()
      return
    }
    this.#isAsking = true
    const sentAt = this.#options.clock.now()
    try {
      const info = parseInfo(String(await this.#send('INFO', 'replication')))
      this.#answeredSentAt = sentAt
      this.#masterOffset = Number(info.get('master_repl_offset') ?? 0)
      this.#open.push({ offset: this.#masterOffset, sentAt })
      if (this.#open.length > 10_000) this.#open.shift()
      this.reached(this.#ownOffset)
    } catch {
      // The next poll opens a new connection; until one is answered, `isFresh` is false.
    } finally {
      this.#isAsking = false
      this.#onChange()
    }
  }
}
