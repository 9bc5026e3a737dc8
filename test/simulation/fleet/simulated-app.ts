import { type ClusterShield, Shield, type Upstream } from '@firebreak/shield'
import { type SimulatedProcess, SimulatedRedis, type SimulatedWorld, type VirtualNetwork } from '@firebreak/testkit'
import { GuardedClient } from './guarded-client.ts'
import { simulatedHubs } from './hub-wires.ts'
import { simulatedPipe } from './redis-wires.ts'

export const hubUrls: readonly string[] = ['http://hub-1:7070', 'http://hub-2:7070']
export const mainRedis = 'redis-1:6379'
/** The same server for the shields' own connections, so that a fault can meet them alone. */
export const watchedRedis = 'redis-1:7379'

/** One run of an application: a shield, and a client that it protects. */
export interface AppLife {
  readonly process: SimulatedProcess
  readonly shield: Shield
  readonly cluster: ClusterShield
  readonly client: GuardedClient
}

/** An application of the fleet, across all its restarts. */
export class SimulatedApp {
  readonly name: string
  readonly #world: SimulatedWorld
  readonly #network: VirtualNetwork
  readonly #work: (life: AppLife) => void
  #life!: AppLife

  constructor(world: SimulatedWorld, network: VirtualNetwork, name: string, work: (life: AppLife) => void) {
    this.name = name
    this.#world = world
    this.#network = network
    this.#work = work
    this.restart()
  }

  current(): SimulatedProcess {
    return this.#life.process
  }

  get life(): AppLife {
    return this.#life
  }

  restart(): void {
    const process = this.#world.process(this.name)
    const network = this.#network
    const shield = new Shield({
      hubs: hubUrls,
      hubTransport: simulatedHubs(process, network),
      serviceId: 'shop',
      hostId: this.name,
      instanceId: process.runtime.newId(),
      tableFile: false,
      runtime: process.runtime,
      onWarning: ({ kind, message, cause }) => {
        process.note(`warns ${kind}: ${message}`)
        if (kind === 'internal') process.world.fail(cause)
      },
    })
    const upstream: Upstream = {
      isCluster: false,
      nodeOf: () => mainRedis,
      connect: () => simulatedPipe(process, network, watchedRedis),
      credentials: () => ({}),
    }
    const cluster = shield.cluster('main', upstream)
    const bare = new SimulatedRedis(process, network, mainRedis, { commandTimeoutMs: 1000 })
    this.#life = { process, shield, cluster, client: new GuardedClient(bare, shield, cluster) }
    this.#work(this.#life)
  }
}
