import { encodeCommand } from '@firebreak/core/resp'
import { SimulatedRedis } from './simulated-redis.ts'
import { SimulatedWorld } from './simulated-world.ts'
import { ValkeyInstance } from './valkey-instance.ts'
import { VirtualNetwork } from './virtual-network.ts'
import { VirtualValkey } from './virtual-valkey.ts'

/** What a simulation costs on this machine, per second of processor time. */
export interface KernelSpeed {
  readonly commandsOneByOne: number
  readonly commandsInHundreds: number
  /** Calls of a `SimulatedRedis` over the network, one after the other: three events and more each. */
  readonly callsOverNetwork: number
  readonly events: number
  readonly newServerMs: number
  readonly serverBytes: number
}

async function cpuMsOf(work: () => unknown): Promise<number> {
  const begin = process.cpuUsage()
  await work()
  const { user, system } = process.cpuUsage(begin)
  return (user + system) / 1000
}

/** Measures what a simulation costs; a few seconds at `scale` 1. */
export async function measureKernel(scale = 1): Promise<KernelSpeed> {
  const perSecond = (count: number, cpuMs: number): number => Math.round((count / cpuMs) * 1000)
  const make = (): ValkeyInstance =>
    new ValkeyInstance({
      wallNowMs: () => 1_700_000_000_000,
      steadyNowMs: () => 1_700_000_000_000,
      fillRandom: (bytes) => bytes.fill(7),
      onLog: () => {},
    })
  const server = make()
  const socket = server.connect({ onData: () => {}, onClose: () => {} })
  const get = encodeCommand(['GET', 'k'])
  const hundred = Buffer.concat(Array.from({ length: 100 }, () => get))
  const serve = (bytes: Uint8Array, count: number): void => {
    for (let index = 0; index < count; index++) {
      socket.push(bytes)
      server.step()
    }
  }
  serve(get, 10_000)
  const singles = Math.round(30_000 * scale)
  const hundreds = Math.round(2000 * scale)
  const servers = Math.max(1, Math.round(10 * scale))
  const oneByOneMs = await cpuMsOf(() => serve(get, singles))
  const inHundredsMs = await cpuMsOf(() => serve(hundred, hundreds))
  const serversMs = await cpuMsOf(() => Array.from({ length: servers }, make))

  const world = new SimulatedWorld({ seed: 1 })
  const network = new VirtualNetwork(world)
  new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
  const redis = new SimulatedRedis(world.process('app'), network, 'redis:6379')
  const calls = Math.round(10_000 * scale)
  const work = async (): Promise<void> => {
    for (let index = 0; index < calls; index++) await redis.send(['GET', 'k'])
  }
  const callsMs = await cpuMsOf(() => world.finish(work(), 3_600_000))
  return {
    commandsOneByOne: perSecond(singles, oneByOneMs),
    commandsInHundreds: perSecond(hundreds * 100, inHundredsMs),
    callsOverNetwork: perSecond(calls, callsMs),
    events: perSecond(world.events, callsMs),
    newServerMs: serversMs / servers,
    serverBytes: server.memoryBytes,
  }
}

/** The measurements in a few lines. */
export function kernelSpeedText(speed: KernelSpeed): string {
  const count = (value: number): string => value.toLocaleString('en-US')
  return [
    `commands per CPU second, one by one:   ${count(speed.commandsOneByOne)}`,
    `commands per CPU second, in hundreds:  ${count(speed.commandsInHundreds)}`,
    `calls over the network per CPU second: ${count(speed.callsOverNetwork)} (${count(speed.events)} events)`,
    `a new server: ${speed.newServerMs.toFixed(1)} ms, ${(speed.serverBytes / 2 ** 20).toFixed(1)} MiB`,
  ].join('\n')
}
