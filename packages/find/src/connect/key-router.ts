import { keySlot, SlotMap } from '@firebreak/core/commands'
import type { CommandArgument, RedisTarget, RespClient, RespValue } from '@firebreak/core/resp'
import { openServer } from './open-server.ts'
import { type DiscoverOptions, discover, type ServerNode, type Topology } from './topology.ts'

/** Sends commands to the master that has their key. */
export class KeyRouter {
  readonly topology: Topology
  readonly #connections: ReadonlyMap<string, RespClient>
  readonly #owners = new SlotMap<RespClient>()
  readonly #first: RespClient

  private constructor(topology: Topology, connections: ReadonlyMap<string, RespClient>) {
    this.topology = topology
    this.#connections = connections
    const clientOf = ({ address }: ServerNode) => connections.get(address)!
    this.#first = clientOf(topology.masters[0]!)
    this.#owners.replace(
      topology.masters.flatMap((master) =>
        (master.slots ?? []).map(([first, last]) => ({ first, last, node: clientOf(master) })),
      ),
    )
  }

  static async open(target: RedisTarget, options: DiscoverOptions = {}): Promise<KeyRouter> {
    const topology = await discover(target, options)
    const connections = new Map<string, RespClient>()
    try {
      for (const { address, target: master } of topology.masters) {
        connections.set(address, await openServer(master))
      }
    } catch (error) {
      for (const connection of connections.values()) connection.close()
      throw error
    }
    return new KeyRouter(topology, connections)
  }

  /** The connection to the master of a key. */
  of(key: Uint8Array): RespClient {
    return this.#owners.ownerOf(keySlot(key)) ?? this.#first
  }

  send(key: Uint8Array, args: readonly CommandArgument[]): Promise<RespValue> {
    return this.of(key).send(args)
  }

  close(): void {
    for (const connection of this.#connections.values()) connection.close()
  }
}
