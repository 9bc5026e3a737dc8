import { FirebreakError, systemTimers, type TimerHandle, type Timers } from '@firebreak/core'
import type { RedisSubscriber } from '../redis.ts'

/** What a cluster client knows about its nodes. */
export interface ClusterNodes {
  /** The address of the master that owns this channel's slot, according to the client's current slot map. */
  homeOf(channel: string): string | undefined
  /** Opens a subscriber on its own connection to that node. */
  subscriberOf(address: string): Promise<RedisSubscriber>
}

interface ChannelState {
  readonly listener: (message: string) => void
  home: string
}

/** How often we check the client's slot map for slots that have moved. */
const lookEveryMs = 500

/*
 * Pub/sub on a cluster: one connection to each node that holds one of our channels. They are sharded where the servers can
 * do that; before Redis 7.0 every node gets every message, and a channel's own node does as well as any.
 *
 * The clients do this differently from version to version, and do not say when subscriptions are restored after a lost
 * connection. Here each channel is subscribed on the node that owns its slot. When the slot map moves that slot
 * (failover, resharding), the channel is resubscribed on the new node and its listeners are notified that messages may
 * be missing.
 */

/** One subscriber, built from a subscriber per node. */
export class ClusterSubscriber implements RedisSubscriber {
  readonly #nodes: ClusterNodes
  readonly #homes = new Map<string, Promise<RedisSubscriber>>()
  readonly #channels = new Map<string, ChannelState>()
  readonly #listeners = new Set<() => void>()
  readonly #timer: TimerHandle
  #isClosed = false

  constructor(nodes: ClusterNodes, timers: Timers = systemTimers) {
    this.#nodes = nodes
    this.#timer = timers.setInterval(() => void this.#follow(), lookEveryMs)
  }

  async subscribe(channel: string, listener: (message: string) => void): Promise<void> {
    if (this.#isClosed)
      throw new FirebreakError('FB_SUBSCRIBER_CLOSED', `subscribe to ${channel}: this subscriber is closed`)
    const state: ChannelState = { listener, home: this.#homeOf(channel) }
    this.#channels.set(channel, state)
    try {
      await this.#settle(channel, state)
    } catch (error) {
      if (this.#channels.get(channel) === state) this.#channels.delete(channel)
      throw error
    }
  }

  async unsubscribe(channel: string): Promise<void> {
    const state = this.#channels.get(channel)
    if (state === undefined) return
    this.#channels.delete(channel)
    await (await this.#homes.get(state.home))?.unsubscribe(channel)
  }

  onReconnect(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => this.#listeners.delete(listener)
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer.cancel()
    const homes = [...this.#homes.values()]
    this.#homes.clear()
    this.#channels.clear()
    await Promise.all(homes.map(async (home) => (await home.catch(() => undefined))?.close()))
  }

  #homeOf(channel: string): string {
    const home = this.#nodes.homeOf(channel)
    if (home === undefined) throw new FirebreakError('FB_SLOT_UNSERVED', `no node of the cluster serves ${channel}`)
    return home
  }

  /**
   * Subscribes on the node that owns the slot. A node that has just lost the slot refuses, and the slot map catches up
   * shortly.
   */
  async #settle(channel: string, state: ChannelState): Promise<void> {
    const subscriber = await this.#open(state.home)
    await subscriber.subscribe(channel, state.listener)
  }

  #open(address: string): Promise<RedisSubscriber> {
    const known = this.#homes.get(address)
    if (known !== undefined) return known
    const opening = this.#nodes.subscriberOf(address)
    this.#homes.set(address, opening)
    opening.then(
      (subscriber) => {
        if (this.#isClosed) void subscriber.close()
        else subscriber.onReconnect(() => this.#tell())
      },
      () => this.#homes.delete(address),
    )
    return opening
  }

  /** Resubscribes the channels whose slots have moved. */
  async #follow(): Promise<void> {
    const moved = [...this.#channels].filter(([channel, state]) => {
      const home = this.#nodes.homeOf(channel)
      return home !== undefined && home !== state.home
    })
    if (moved.length === 0) return
    await Promise.all(moved.map(([channel, state]) => this.#move(channel, state)))
    const inUse = new Set([...this.#channels.values()].map(({ home }) => home))
    for (const [address, home] of this.#homes) {
      if (inUse.has(address)) continue
      this.#homes.delete(address)
      home.then((subscriber) => subscriber.close()).catch(() => {})
    }
    if (!this.#isClosed) this.#tell()
  }

  async #move(channel: string, state: ChannelState): Promise<void> {
    const before = state.home
    state.home = this.#homeOf(channel)
    try {
      await this.#settle(channel, state)
    } catch {
      // The next check retries.
      state.home = before
    }
  }

  #tell(): void {
    for (const listener of this.#listeners) listener()
  }
}
