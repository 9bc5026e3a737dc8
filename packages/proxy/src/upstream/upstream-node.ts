import { LatencyTable } from '../observe/latency-table.ts'
import { NodeHealth } from '../observe/node-health.ts'
import type { ConnectTarget } from '../transport/transport.ts'
import type { ConnectionState, Identity } from './identity.ts'
import { type LaneKeeper, type LaneUse, type LatencySink, type ReplyTarget, SharedLane } from './shared-lane.ts'
import { type ReplyReceiver, UpstreamConnection, type UpstreamSettings } from './upstream-connection.ts'

/** How a node's connections are managed. */
export interface NodeSettings extends UpstreamSettings {
  /** Idle dedicated connections kept for reuse. */
  readonly maxIdleConnections: number
  readonly idleConnectionMs: number
  /** A request took longer than this, in milliseconds. */
  readonly slowMs: number
  readonly onSlow: (node: UpstreamNode, commandId: number, elapsedMs: number, target: ReplyTarget) => void
  /** The server has closed a shared connection of that user. */
  readonly onCut?: (node: UpstreamNode, identity: Identity) => void
}

/** A reply may take this long before its connection is in doubt. */
const silentMs = 1000

interface IdleConnection {
  readonly connection: UpstreamConnection
  readonly sinceMs: number
}

/**
 * The connections to one Redis: a few shared ones, by user, protocol and database, and dedicated ones for clients as
 * long as they need them.
 */
export class UpstreamNode implements LaneKeeper {
  readonly target: ConnectTarget
  readonly #settings: NodeSettings
  readonly #lanes = new Map<string, SharedLane>()
  /** Lanes that accept no more requests but still owe replies. */
  readonly #retired = new Set<SharedLane>()
  readonly #idle = new Map<string, IdleConnection[]>()
  /** When each shared connection was last seen to get a request. */
  readonly #lastUse = new WeakMap<SharedLane, { readonly sentCount: number; readonly sinceMs: number }>()
  /** How long each shared connection has owed the same reply, or nothing. */
  readonly #owing = new WeakMap<SharedLane, { readonly answeredCount: number; readonly sinceMs: number }>()
  readonly #owned = new Set<UpstreamConnection>()
  readonly latency = new LatencyTable()
  readonly health = new NodeHealth()
  readonly #onLatency: LatencySink
  #isClosed = false

  constructor(target: ConnectTarget, settings: NodeSettings) {
    this.target = target
    this.#settings = { ...settings, watch: this.health }
    const { turn, slowMs, onSlow } = settings
    this.#onLatency = (commandId, sentMs, asker) => {
      const elapsedMs = turn.nowMs - sentMs
      this.latency.record(commandId, elapsedMs)
      if (elapsedMs >= slowMs) onSlow(this, commandId, elapsedMs, asker)
    }
  }

  /** Records the answer to a command sent at that time. */
  record(commandId: number, sentMs: number, asker: ReplyTarget): void {
    this.#onLatency(commandId, sentMs, asker)
  }

  get address(): string {
    return this.target.path ?? `${this.target.host}:${this.target.port}`
  }

  /** Dedicated connections in use. */
  get ownedCount(): number {
    return this.#owned.size
  }

  get sharedCount(): number {
    return this.#lanes.size + this.#retired.size
  }

  /** Connections of every kind. */
  get connectionCount(): number {
    return this.sharedCount + this.ownedCount + this.idleCount
  }

  /** Bytes on shared connections not yet accepted by Redis. */
  get queuedBytes(): number {
    let bytes = 0
    for (const lane of this.#lanes.values()) bytes += lane.queuedBytes
    for (const lane of this.#retired) bytes += lane.queuedBytes
    return bytes
  }

  get idleCount(): number {
    let count = 0
    for (const list of this.#idle.values()) count += list.length
    return count
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  /** The shared connection for a state, created if necessary. */
  lane(state: ConnectionState, use: LaneUse = 'commands'): SharedLane {
    const id = `${use} ${stateId(state)}`
    const known = this.#lanes.get(id)
    if (known !== undefined) return known
    const lane = new SharedLane(this.target, state, use, this.#settings, this.#onLatency, this)
    this.#lanes.set(id, lane)
    return lane
  }

  onRetired(lane: SharedLane): void {
    const id = `${lane.use} ${stateId(lane.state)}`
    if (this.#lanes.get(id) === lane) this.#lanes.delete(id)
    this.#retired.add(lane)
  }

  onClosed(lane: SharedLane): void {
    this.#retired.delete(lane)
  }

  onCut(lane: SharedLane): void {
    this.#settings.onCut?.(this, lane.state.identity)
  }

  /** A dedicated connection for one client; with `isFresh`, one that nobody has used before. */
  own(state: ConnectionState, receiver: ReplyReceiver, isFresh = false): UpstreamConnection {
    const idle = isFresh ? undefined : this.#idle.get(stateId(state))?.pop()
    if (idle !== undefined) idle.connection.receiver = receiver
    const connection = idle?.connection ?? new UpstreamConnection(this.target, state, receiver, this.#settings)
    this.#owned.add(connection)
    return connection
  }

  /** Returns a connection in the state it was created in; it is kept for reuse, or closed. */
  giveBack(connection: UpstreamConnection): void {
    this.#owned.delete(connection)
    if (connection.isClosed) return
    // Its previous user may have been slow.
    connection.resume()
    const id = stateId(connection.state)
    const list = this.#idle.get(id) ?? []
    if (this.#isClosed || list.length >= this.#settings.maxIdleConnections) {
      connection.destroy()
      return
    }
    this.#idle.set(id, list)
    const entry = { connection, sinceMs: this.#settings.runtime.clock.now() }
    list.push(entry)
    connection.receiver = {
      onReply: () => {},
      onLost: () => {
        const index = list.indexOf(entry)
        if (index >= 0) list.splice(index, 1)
      },
    }
  }

  /** Closes a connection that cannot be reused. */
  dispose(connection: UpstreamConnection): void {
    this.#owned.delete(connection)
    connection.destroy()
  }

  /** Closes connections that have been idle too long; called some ten times a second. */
  sweep(): void {
    const now = this.#settings.runtime.clock.now()
    const oldest = now - this.#settings.idleConnectionMs
    for (const lane of [...this.#lanes.values()]) {
      const { sentCount, inFlight } = lane
      const last = this.#lastUse.get(lane)
      if (last?.sentCount !== sentCount || inFlight > 0) this.#lastUse.set(lane, { sentCount, sinceMs: now })
      else if (last.sinceMs < oldest) lane.close()
      this.#watchSilence(lane, now)
    }
    for (const [id, list] of this.#idle) {
      while (list.length > 0 && list[0]!.sinceMs < oldest) list.shift()!.connection.destroy()
      if (list.length === 0) this.#idle.delete(id)
    }
  }

  /** True while a shared connection has owed a reply for so long that it may be silently dead. */
  get isSilent(): boolean {
    const oldest = this.#settings.runtime.clock.now() - silentMs
    return [...this.#lanes.values()].some((lane) => this.#isSilent(lane, oldest))
  }

  /**
   * The server answered on a connection of that time. A connection that owed a reply long before that has been lost on
   * the way, as when a middlebox forgot it; TCP only gives it up after minutes. Clients that wait on it keep waiting,
   * as with a direct connection, and everybody else gets a new one.
   */
  onAnswered(askedMs: number): void {
    const silent = [...this.#lanes.values()].filter((lane) => this.#isSilent(lane, askedMs - silentMs))
    if (silent.length === 0) return
    for (const lane of silent) lane.giveWay()
    for (const list of this.#idle.values()) for (const { connection } of list) connection.destroy()
    this.#idle.clear()
  }

  #watchSilence(lane: SharedLane, now: number): void {
    const { answeredCount, inFlight } = lane
    if (inFlight === 0 || this.#owing.get(lane)?.answeredCount !== answeredCount)
      this.#owing.set(lane, { answeredCount, sinceMs: now })
  }

  #isSilent(lane: SharedLane, sinceMs: number): boolean {
    const owing = this.#owing.get(lane)
    return lane.inFlight > 0 && owing?.answeredCount === lane.answeredCount && owing.sinceMs < sinceMs
  }

  /** Closes all connections and notifies everyone who waits on one. */
  loseAll(reason: string): void {
    for (const lane of [...this.#lanes.values(), ...this.#retired]) lane.lose(reason)
    for (const connection of [...this.#owned]) connection.lose(reason)
    for (const list of this.#idle.values()) for (const { connection } of list) connection.destroy()
    this.#idle.clear()
  }

  /** Closes everything at once. */
  close(): void {
    this.#isClosed = true
    for (const lane of [...this.#lanes.values(), ...this.#retired]) lane.close()
    for (const list of this.#idle.values()) for (const { connection } of list) connection.destroy()
    for (const connection of this.#owned) connection.destroy()
    this.#idle.clear()
    this.#owned.clear()
  }
}

function stateId({ identity, version, database }: ConnectionState): string {
  return `${version} ${database} ${identity.id}`
}
