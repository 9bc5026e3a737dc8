import type { HistoryEvent } from '@firebreak/core'
import { HubCore, RedisStore, type SensorSessions } from '@firebreak/hub'
import type { Redis } from '@firebreak/redis'
import {
  RedisLinkError,
  type SimulatedProcess,
  SimulatedRedis,
  type SimulatedWorld,
  type VirtualNetwork,
} from '@firebreak/testkit'
import { sensorChannel } from './hub-wires.ts'

/** The process that sent the report. */
export interface ReportSender {
  readonly hostId: string
  readonly instanceId: string
}

/** What a hub reports to the oracles. */
export interface HubListener {
  /** Accesses of a process' report that a hub has accepted. */
  counted(sender: ReportSender, accesses: number): void
  /** An event for the history. */
  recorded(event: HistoryEvent): void
  /** A hub has started, but has not accepted sensors yet. */
  started?(process: SimulatedProcess, core: HubCore): void
}

/** Set up like the hub's own client: nothing waits for a connection; commands that cannot be sent fail at once. */
class StoreRedis extends SimulatedRedis {
  override send(...call: Parameters<SimulatedRedis['send']>): ReturnType<SimulatedRedis['send']> {
    return this.isConnected ? super.send(...call) : Promise.reject(new RedisLinkError('not connected', false))
  }

  override run(...call: Parameters<SimulatedRedis['run']>): ReturnType<SimulatedRedis['run']> {
    return this.isConnected ? super.run(...call) : Promise.reject(new RedisLinkError('not connected', false))
  }
}

/**
 * Several buckets, so that some fail while others do not; each is asked twenty times a second. Outboxes so small that a
 * hub which stands still for a while has missed some of it.
 */
const boardOptions = { bucketCount: 3, maxOutbox: 2 }

/** A hub of the fleet, across all its restarts. */
export class SimulatedHub {
  readonly name: string
  readonly #world: SimulatedWorld
  readonly #network: VirtualNetwork
  readonly #listener: HubListener
  #process!: SimulatedProcess
  #core: HubCore | undefined

  constructor(world: SimulatedWorld, network: VirtualNetwork, name: string, listener: HubListener) {
    this.name = name
    this.#world = world
    this.#network = network
    this.#listener = listener
    this.restart()
  }

  current(): SimulatedProcess {
    return this.#process
  }

  /** Undefined while it starts. */
  get core(): HubCore | undefined {
    return this.#process.isAlive ? this.#core : undefined
  }

  restart(): void {
    this.#core = undefined
    const process = this.#world.process(this.name)
    this.#process = process
    process.start(() => this.#open(process))
  }

  async #open(process: SimulatedProcess): Promise<void> {
    const redis = new StoreRedis(process, this.#network, 'redis-2:6379', { connectTimeoutMs: 2000 })
    for (;;) {
      try {
        const { newId } = process.runtime
        const store = new RedisStore(redis as unknown as Redis, { newId, boardOptions })
        const core = await HubCore.open(store, { hubId: this.name, runtime: process.runtime, loadOf: () => 0 })
        this.#serve(process, core)
        return
      } catch {
        // As under a supervisor: the store was unreachable, so it is started again.
        await process.sleep(200)
      }
    }
  }

  #serve(process: SimulatedProcess, core: HubCore): void {
    const { intake } = core
    const take = intake.take.bind(intake)
    intake.take = (report, bytes, start) => {
      let accesses = 0
      for (const { totalCount } of report.sections) accesses += totalCount
      this.#listener.counted(report.instance, accesses)
      take(report, bytes, start)
    }
    core.journal.onRecord = (event) => this.#listener.recorded(event)
    this.#listener.started?.(process, core)
    core.start()
    const sessions: SensorSessions = core.sensorSessions()
    sessions.start()
    this.#network.listen(process, `${this.name}:7070`, (end) => void sessions.open(sensorChannel(end)))
    this.#core = core
  }
}
