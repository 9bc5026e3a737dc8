import type { Runtime, TimerHandle } from '@firebreak/core'
import { parseRedisUrl } from '@firebreak/core/resp'
import { type Finding, type FoundKey, findHotByServer, findSlots, type SlotLoad } from '@firebreak/find'
import { redactFinding } from '../findings/redact-finding.ts'
import type { TrafficMeter } from '../fleet/traffic-meter.ts'
import type { SlotHeat } from '../heat/slot-heat.ts'

/** One node's load as counted by the server, next to what sensors report. */
export interface EngineNodeView {
  readonly node: string
  readonly operationsPerSecond: number
  /** What reached it according to sensors. */
  readonly reportedPerSecond: number
  /** The fraction of the load that no sensor reports, 0 to 1. */
  readonly unreportedShare: number
  readonly cpuMicrosecondsPerSecond?: number
}

/** The statistics of one cluster's servers. */
export interface EngineView {
  readonly redisClusterId: string
  readonly at: number
  readonly nodes: readonly EngineNodeView[]
  /** The busiest slots, if the server counts by slot. */
  readonly slots: readonly SlotLoad[]
  /** The server's own hot keys, if it has HOTKEYS. */
  readonly hotKeys: readonly FoundKey[]
  readonly notes: readonly string[]
}

/** Ways to query a server; tests replace them with the documented answers of newer servers. */
export interface EngineQuestions {
  slots(): Promise<Finding>
  hotKeys(): Promise<Finding>
}

export interface EngineSensorOptions {
  readonly redisClusterId: string
  /** One server of the cluster: `redis://[user:password@]host:port`. */
  readonly url: string
  readonly slots: SlotHeat
  readonly traffic: TrafficMeter
  readonly runtime: Runtime
  /** @default 10000 */
  readonly intervalMs?: number
  /** How long the servers are observed each time. @default 1000 */
  readonly durationMs?: number
  /** A key's name in the view. @default its name */
  readonly outside?: (key: string) => string
  /** @default find's */
  readonly questions?: EngineQuestions
}

/**
 * Queries the statistics of one cluster's servers: operations of each node, and `CLUSTER SLOT-STATS` and `HOTKEYS` if
 * available. What they count beyond the sensors' reports is load from clients that Firebreak does not see.
 */
export class EngineSensor {
  readonly #options: EngineSensorOptions
  readonly #questions: EngineQuestions
  #timer: TimerHandle | undefined
  #isAsking = false
  #view: EngineView | undefined

  constructor(options: EngineSensorOptions) {
    this.#options = options
    const target = parseRedisUrl(options.url)
    const { durationMs = 1000 } = options
    this.#questions = options.questions ?? {
      slots: () => findSlots({ target, durationMs }),
      hotKeys: () => findHotByServer({ target, durationMs }),
    }
  }

  /** Undefined before the first answer. */
  get view(): EngineView | undefined {
    return this.#view
  }

  start(): void {
    void this.ask()
    this.#timer = this.#options.runtime.timers.setInterval(() => void this.ask(), this.#options.intervalMs ?? 10_000)
  }

  close(): void {
    this.#timer?.cancel()
  }

  /** Queries once; a server that does not answer adds a note, never an error. */
  async ask(): Promise<void> {
    if (this.#isAsking) return
    this.#isAsking = true
    const notes: string[] = []
    const note = (error: unknown) => {
      notes.push((error as Error).message.split('\n')[0]!)
      return undefined
    }
    const load = await this.#questions.slots().catch(note)
    const hot = await this.#questions.hotKeys().catch(note)
    this.#isAsking = false
    const { redisClusterId, runtime, outside } = this.#options
    const finding = hot === undefined || outside === undefined ? hot : redactFinding(hot, outside)
    this.#view = {
      redisClusterId,
      at: runtime.clock.now(),
      nodes: load === undefined ? [] : this.#nodes(load),
      slots: load?.slots ?? [],
      hotKeys: finding?.keys ?? [],
      notes: [...notes, ...(load?.notes ?? []), ...(hot?.notes ?? [])],
    }
  }

  #nodes({ nodes = [] }: Finding): EngineNodeView[] {
    const { slots, traffic, redisClusterId, runtime } = this.#options
    const now = runtime.clock.now()
    const { redis, local, copies, limited, writes } = traffic.latest(now)
    const all = redis + local + copies + limited + writes
    // Sensors count all accesses; those answered by a shield never reach the server.
    const reachedPart = all === 0 ? 1 : (redis + copies + writes) / all
    const reported = slots.ratePerSecond(redisClusterId, now) * reachedPart
    const operations = nodes.reduce((sum, node) => sum + node.operationsPerSecond, 0)
    return nodes.map(({ node, operationsPerSecond, cpuMicrosecondsPerSecond }) => {
      // A report does not say which node it concerns: it is divided by the nodes' own counts.
      const part = operations === 0 ? 0 : reported * (operationsPerSecond / operations)
      const unreported = Math.max(0, operationsPerSecond - part)
      return {
        node,
        operationsPerSecond: Math.round(operationsPerSecond),
        reportedPerSecond: Math.round(part),
        unreportedShare: operationsPerSecond === 0 ? 0 : Number((unreported / operationsPerSecond).toFixed(3)),
        ...(cpuMicrosecondsPerSecond !== undefined && { cpuMicrosecondsPerSecond }),
      }
    })
  }
}
