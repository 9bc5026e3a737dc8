import { createHash } from 'node:crypto'
import type { RedisLinkOptions } from '../redis-link.ts'
import { SimulatedRedis, type SimulatedScript } from '../simulated-redis.ts'
import { SimulatedWorld } from '../simulated-world.ts'
import { VirtualNetwork, type VirtualNetworkOptions } from '../virtual-network.ts'
import { VirtualValkey } from '../virtual-valkey.ts'

export const address = 'redis-1:6379'

/** A script as the room `redis` defines it. */
export function script(source: string): SimulatedScript {
  return { name: 'test', source, sha1: createHash('sha1').update(source).digest('hex') }
}

/** One application and one server. */
export function build(seed: number, options: VirtualNetworkOptions = {}) {
  const world = new SimulatedWorld({ seed, maxLogLines: 100_000 })
  const network = new VirtualNetwork(world, options)
  const valkey = new VirtualValkey(world, 'redis-1').listen(network, address)
  const app = world.process('app-1')
  const client = (clientOptions?: RedisLinkOptions) => new SimulatedRedis(app, network, address, clientOptions)
  return { world, network, valkey, app, client, redis: client() }
}
