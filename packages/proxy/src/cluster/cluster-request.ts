import type { Runtime } from '@firebreak/core'
import { encodeCommand } from '@firebreak/core/resp'
import { UpstreamLostError } from '../errors.ts'
import type { ConnectionState } from '../upstream/identity.ts'
import type { LaneUse, ReplyTarget, SharedLane } from '../upstream/shared-lane.ts'
import type { UpstreamNode } from '../upstream/upstream-node.ts'
import type { UpstreamTopology } from '../upstream/upstream-topology.ts'
import { redirectOf } from './redirect.ts'

/** What a request to a cluster consists of. */
export interface ClusterRequestOptions {
  readonly runtime: Runtime
  readonly topology: UpstreamTopology
  readonly state: ConnectionState
  /** The request; kept until it is answered. */
  readonly bytes: Uint8Array
  /** Its hash slot, or -1 if any master will do. */
  readonly slot: number
  readonly use: LaneUse
  readonly commandId: number
  readonly nowMs: number
  /** True if it only reads, so it may be resent although it may have been carried out. */
  readonly isRetrySafe: boolean
  readonly retryForMs: number
  /** Receives the reply, under `tag`. */
  readonly sink: ReplyTarget
  readonly tag: number
  /** The request goes to another node than the one it was first sent to: later requests must not overtake it. */
  readonly onDetour: () => void
}

const asking = encodeCommand(['ASKING'])
const minus = 0x2d
const laterMs = 20

/**
 * One request to a cluster, until it is answered: follows MOVED and ASK, waits when the cluster asks for it, and is
 * resent over another connection if one was lost and nothing can happen twice.
 */
export class ClusterRequest implements ReplyTarget {
  readonly #options: ClusterRequestOptions
  readonly #deadlineMs: number
  #node: UpstreamNode
  #pieces: Buffer[] = []
  #hasBegun = false
  #redirects = 0

  constructor(options: ClusterRequestOptions) {
    this.#options = options
    this.#deadlineMs = options.nowMs + options.retryForMs
    this.#node = this.#owner()
  }

  /** Sends it, over `lane` as long as that is a connection to its node. */
  send(lane?: SharedLane): void {
    const isItsNode = lane !== undefined && !lane.isClosed && lane.address === this.#node.address
    this.#put(this.#node, false, isItsNode ? lane : undefined)
  }

  onReply(_tag: number, bytes: Buffer, start: number, end: number, isLast: boolean, type: number): void {
    const { sink, tag } = this.#options
    if (type !== minus) {
      this.#hasBegun = true
      sink.onReply(tag, bytes, start, end, isLast, type)
      return
    }
    this.#pieces.push(Buffer.from(bytes.subarray(start, end)))
    if (!isLast) return
    const reply = Buffer.concat(this.#pieces)
    this.#pieces = []
    if (!this.#follow(reply)) sink.onReply(tag, reply, 0, reply.length, true, type)
  }

  onLost(_tag: number, error: UpstreamLostError, wasSent: boolean): void {
    const { sink, tag, isRetrySafe, topology } = this.#options
    const mayRetry = error.refusal === undefined && (!wasSent || isRetrySafe) && !this.#hasBegun
    if (!mayRetry || this.#isLate) {
      sink.onLost(tag, error, wasSent)
      return
    }
    this.#options.onDetour()
    this.#pieces = []
    void topology.refresh().then(() => this.#later())
  }

  isStalled(): boolean {
    const { sink, tag } = this.#options
    return sink.isStalled?.(tag) ?? false
  }

  whenUnstalled(callback: () => void): void {
    const { sink, tag } = this.#options
    sink.whenUnstalled!(callback, tag)
  }

  isBehind(): boolean {
    const { sink, tag } = this.#options
    return sink.isBehind?.(tag) ?? false
  }

  whenCaughtUp(callback: () => void): void {
    const { sink, tag } = this.#options
    sink.whenCaughtUp!(callback, tag)
  }

  onBypassed(): void {
    this.#options.onDetour()
  }

  get #isLate(): boolean {
    return this.#options.runtime.clock.now() > this.#deadlineMs
  }

  /** Does what a cluster error asks for; false if the error is for the client. */
  #follow(reply: Buffer): boolean {
    const { topology } = this.#options
    const redirect = redirectOf(reply)
    if (redirect === undefined || this.#isLate) return false
    this.#options.onDetour()
    if (redirect.kind === 'later') {
      void topology.refresh()
      this.#later()
      return true
    }
    // Two nodes that each think the other has the slot will agree soon or never.
    if (++this.#redirects > 5) {
      this.#redirects = 0
      void topology.refresh().then(() => this.#later())
      return true
    }
    const { kind, slot, host, port } = redirect
    if (kind === 'moved') this.#put(topology.moved(slot, host, port, this.#node), false)
    else this.#put(topology.nodeAt(host, port, this.#node), true)
    return true
  }

  #later(): void {
    this.#options.runtime.timers.setTimeout(() => {
      const { sink, tag } = this.#options
      const node = this.#owner()
      if (node.isClosed) sink.onLost(tag, new UpstreamLostError(node.address, 'the proxy is closed'), false)
      else this.#put(node, false)
    }, laterMs)
  }

  #owner(): UpstreamNode {
    const { topology, slot } = this.#options
    return slot < 0 ? topology.masters[0]! : topology.nodeOf(slot)
  }

  #put(node: UpstreamNode, isAsking: boolean, by?: SharedLane): void {
    const { state, use, bytes, commandId, nowMs } = this.#options
    this.#node = node
    const lane = by ?? node.lane(state, use)
    if (isAsking) lane.send(asking, 0, asking.length, unheard, 0, 0, nowMs)
    lane.send(bytes, 0, bytes.length, this, 0, commandId, nowMs)
  }
}

const unheard: ReplyTarget = { onReply: () => {}, onLost: () => {} }
