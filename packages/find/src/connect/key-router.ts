import { type CommandArgument, keySlot, type RespValue } from '@firebreak/core'
import { RedisConnection } from './connection.ts'
import type { RedisTarget } from './target.ts'
import { type DiscoverOptions, discover, type Topology } from './topology.ts'

/** Sends commands to the master that has their key. */
export class KeyRouter {
  readonly topology: Topology
  readonly #connections: ReadonlyMap<string, RedisConnection>
  readonly #ownerOfSlot: readonly string[]

  private constructor(topology: Topology, connections: ReadonlyMap<string, RedisConnection>) {
    this.topology = topology
    this.#connections = connections
    const owners = new Array<string>(16384).fill(topology.masters[0]!.address)
    for (const { address, slots } of topology.masters) {
      for (const [from, to] of slots ?? []) owners.fill(address, from, to + 1)
    }
    this.#ownerOfSlot = owners
  }

  static async open(target: RedisTarget, options: DiscoverOptions = {}): Promise<KeyRouter> {
    const topology = await discover(target, options)
    const connections = new Map<string, RedisConnection>()
    try {
      for (const { address, target: master } of topology.masters) {
        connections.set(address, await RedisConnection.open(master))
      }
    } catch (error) {
      for (const connection of connections.values()) connection.close()
      throw error
    }
    return new KeyRouter(topology, connections)
  }

  /** The connection to the master of a key. */
  of(key: Uint8Array): RedisConnection {
    return this.#connections.get(this.#ownerOfSlot[keySlot(key)]!)!
  }

  send(key: Uint8Array, args: readonly CommandArgument[]): Promise<RespValue> {
    return this.of(key).send(args)
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close()
  }
}
