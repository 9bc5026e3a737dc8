import type { TimerHandle } from '@firebreak/core'
import type { ConnectTarget } from '../transport/transport.ts'
import { askOnce } from '../upstream/ask-once.ts'
import type { Identity } from '../upstream/identity.ts'
import { type NodeSettings, UpstreamNode } from '../upstream/upstream-node.ts'
import type { UpstreamTopology } from '../upstream/upstream-topology.ts'

/** Where the Sentinels are, and their group. */
export interface SentinelOptions {
  readonly sentinels: readonly ConnectTarget[]
  readonly group: string
  /** The proxy's identity to the Sentinels. */
  readonly identity: Identity
  readonly settings: NodeSettings
}

const pollMs = 500
const refreshGapMs = 50

/**
 * The master according to the Sentinels: asked at the start, every half second, and whenever a connection is lost. When
 * the master changes, connections to the old one are closed: unsent requests go to the new one, reads are retried, and
 * a write that may have been carried out gets an error that says so.
 */
export class SentinelTopology implements UpstreamTopology {
  readonly isSpread = false
  readonly homeSlots: readonly number[] = [0]
  readonly #options: SentinelOptions
  #node: UpstreamNode
  #refreshing: Promise<void> | undefined
  #refreshedMs = Number.NEGATIVE_INFINITY
  readonly #timer: TimerHandle
  #isClosed = false

  constructor(options: SentinelOptions) {
    this.#options = options
    // Until a Sentinel has answered there is no server: use a port where nobody listens.
    this.#node = new UpstreamNode({ ...options.sentinels[0]!, port: 1 }, options.settings)
    this.#timer = options.settings.runtime.timers.setInterval(() => void this.refresh(), pollMs)
  }

  get masters(): readonly UpstreamNode[] {
    return [this.#node]
  }

  get nodes(): Iterable<UpstreamNode> {
    return [this.#node]
  }

  nodeOf(): UpstreamNode {
    return this.#node
  }

  moved(): UpstreamNode {
    return this.#node
  }

  nodeAt(): UpstreamNode {
    return this.#node
  }

  refresh(): Promise<void> {
    if (this.#isClosed) return Promise.resolve()
    this.#refreshing ??= this.#refresh().finally(() => {
      this.#refreshing = undefined
    })
    return this.#refreshing
  }

  close(): void {
    this.#isClosed = true
    this.#timer.cancel()
    this.#node.close()
  }

  async #refresh(): Promise<void> {
    const { sentinels, group, identity, settings } = this.#options
    const { clock, timers } = settings.runtime
    const waitMs = this.#refreshedMs + refreshGapMs - clock.now()
    if (waitMs > 0) await new Promise<void>((resolve) => timers.setTimeout(resolve, waitMs))
    for (const sentinel of sentinels) {
      try {
        const command = ['SENTINEL', 'GET-MASTER-ADDR-BY-NAME', group]
        const reply = await askOnce(sentinel, identity, { ...settings, connectWaitMs: 300 }, command)
        if (!Array.isArray(reply)) continue
        this.#take(String(reply[0]), Number(reply[1]))
        break
      } catch {
        // The next one may answer.
      }
    }
    this.#refreshedMs = clock.now()
  }

  #take(host: string, port: number): void {
    const { target } = this.#node
    if (this.#isClosed || (target.host === host && target.port === port)) return
    const before = this.#node
    this.#node = new UpstreamNode({ ...target, host, port }, this.#options.settings)
    before.loseAll('another server is the master now')
  }
}
