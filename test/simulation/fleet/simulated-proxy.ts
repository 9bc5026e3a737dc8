import type { KeySpace } from '@firebreak/shield'
import type { SimulatedProcess, SimulatedWorld, VirtualNetwork } from '@firebreak/testkit'
import { resolveProxyOptions } from '../../../packages/proxy/src/options.ts'
import { ProxyCore } from '../../../packages/proxy/src/proxy-core.ts'
import { simulatedHubs } from './hub-wires.ts'
import { PipeTransport, simulatedTransports } from './redis-wires.ts'
import { hubUrls, mainRedis } from './simulated-app.ts'

export const proxyAddress = 'proxy:6380'

/** The proxy of the fleet, across all its restarts. */
export class SimulatedProxy {
  readonly name = 'proxy'
  readonly #world: SimulatedWorld
  readonly #network: VirtualNetwork
  #process!: SimulatedProcess
  #core!: ProxyCore
  #space!: KeySpace

  constructor(world: SimulatedWorld, network: VirtualNetwork) {
    this.#world = world
    this.#network = network
    this.restart()
  }

  current(): SimulatedProcess {
    return this.#process
  }

  /** The keys as the caller reads them. */
  get space(): KeySpace {
    return this.#space
  }

  get core(): ProxyCore {
    return this.#core
  }

  restart(): void {
    const process = this.#world.process(this.name)
    this.#process = process
    const options = resolveProxyOptions({
      upstream: `redis://${mainRedis}`,
      mode: 'single',
      logger: { info() {}, warn() {} },
      shield: {
        redisClusterId: 'main',
        hubs: hubUrls,
        hubTransport: simulatedHubs(process, this.#network),
        serviceId: 'shop',
        hostId: this.name,
        instanceId: process.runtime.newId(),
        tableFile: false,
        runtime: process.runtime,
        onWarning: ({ kind, message, cause }) => {
          process.note(`warns ${kind}: ${message}`)
          if (kind === 'internal') process.world.fail(cause)
        },
      },
    })
    const transports = simulatedTransports(process, this.#network)
    const core = new ProxyCore(options, 'single', { transports, runtime: process.runtime })
    this.#core = core
    this.#space = core.shield!.spaceOf(options.identity, 0)
    this.#network.listen(process, proxyAddress, (end) => core.accept((client) => new PipeTransport(end, client)))
  }
}
