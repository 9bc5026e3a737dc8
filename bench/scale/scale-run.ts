import { parseRule } from '@firebreak/core/rules'
import { SimulatedWorld, VirtualNetwork, VirtualValkey } from '@firebreak/testkit'
import { quantile } from '../harness/bench.ts'
import { ChargedHub } from './charged-hub.ts'
import type { FrameCosts } from './frame-costs.ts'
import { flashPerSecond, LightSensors } from './light-sensors.ts'
import { flashKey, ReportPool, serviceId } from './report-pool.ts'

/** How large, and of how many. */
export interface ScaleSize {
  readonly sensors: number
  readonly hubs: number
}

/** The fleet as it was at one moment. */
export interface Sample {
  readonly atMs: number
  /** The share of a core that the busiest hub needed since the last sample; above 1 it falls behind. */
  readonly busiest: number
  readonly mean: number
  /** The longest that a frame waits at any hub. */
  readonly delayMs: number
  readonly bytesInPerSecond: number
  readonly bytesOutPerSecond: number
  readonly storeCallsPerSecond: number
  /** The share of its one core that the hubs' Redis needs for them. */
  readonly storeLoad: number
  readonly connected: number
  readonly intervalMs: number
}

export interface ScaleResult {
  readonly size: ScaleSize
  readonly samples: readonly Sample[]
  /** From the beginning of the crowd until the first hub has the key in its table; undefined: never. */
  readonly detectedMs: number | undefined
  /** From then until half, 99 of 100 and the last of the sensors knew; undefined where not all ever did. */
  readonly toldMs: { readonly half: number; readonly most: number; readonly last: number } | undefined
  /** Until all sensors of the lost hub, and those of the region that was cut off, were connected again. */
  readonly hubLostMs: number | undefined
  readonly regionMs: number | undefined
  /** Processor time of this run. */
  readonly cpuMs: number
}

/** What happens when, in milliseconds. */
export const plan = {
  joinMs: 2000,
  flashMs: 5000,
  hubLostMs: 7500,
  cutMs: 9500,
  cutForMs: 1500,
  endMs: 14_000,
} as const
const sampleMs = 250
const keys = 1_000_000
/** A key is hot from 2 % of all accesses on; the crowd brings ten times as much. */
const share = 0.02

/** Plays the plan for one size. */
export async function runScale(size: ScaleSize, costs: FrameCosts, endMs: number = plan.endMs): Promise<ScaleResult> {
  const begin = process.cpuUsage()
  const world = new SimulatedWorld({ seed: 1 })
  const network = new VirtualNetwork(world)
  const store = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
  const opening = Array.from({ length: size.hubs }, (_, index) =>
    ChargedHub.open(world, network, `hub-${index + 1}`, costs),
  )
  const hubs = await world.finish(Promise.all(opening))
  const threshold = Math.round(size.sensors * flashPerSecond * share * 5)
  for (const prefix of ['item:', 'flash:']) {
    const rule = parseRule({ id: prefix, prefix, threshold, windowMs: 1000, strategy: 'LocalCache' })
    await world.finish(hubs[0]!.core.putRule(rule, 'bench'))
  }
  const sensors = new LightSensors(world, hubs, new ReportPool(world.chance.fork('keys').next, keys), size.sensors)
  sensors.join(plan.joinMs)
  const startMs = world.elapsedMs
  const samples: Sample[] = []
  let last = totals()
  let detectedAtMs: number | undefined
  const back: { hub: number | undefined; region: number | undefined } = { hub: undefined, region: undefined }
  const events = [
    { atMs: plan.flashMs, run: () => sensors.beginFlash() },
    {
      atMs: plan.hubLostMs,
      run: () => {
        hubs[0]!.process.kill()
        sensors.hubLost(hubs[0]!)
      },
    },
    { atMs: plan.cutMs, run: () => sensors.cut(3, plan.cutForMs) },
  ]
  for (let atMs = 0; atMs < endMs; ) {
    for (const event of events) if (event.atMs === atMs) event.run()
    for (let waited = 0; waited < sampleMs; waited += 25) {
      await world.run(25)
      detectedAtMs ??= hubs.some(hasFlash) ? world.elapsedMs - startMs : undefined
    }
    atMs += sampleMs
    const now = totals()
    samples.push(sampleOf(atMs, last, now))
    last = now
    const isAll = sensors.connected === size.sensors
    if (isAll && atMs > plan.hubLostMs && atMs <= plan.cutMs) back.hub ??= atMs - plan.hubLostMs
    if (isAll && atMs > plan.cutMs + plan.cutForMs) back.region ??= atMs - plan.cutMs - plan.cutForMs
  }
  const flashFromMs = startMs + plan.flashMs
  const told = sensors.sensors.flatMap(({ toldAtMs }) => (toldAtMs === undefined ? [] : [toldAtMs - flashFromMs]))
  const { user, system } = process.cpuUsage(begin)
  return {
    size,
    samples,
    detectedMs: detectedAtMs === undefined ? undefined : detectedAtMs - plan.flashMs,
    toldMs:
      told.length < size.sensors
        ? undefined
        : { half: quantile(told, 0.5), most: quantile(told, 0.99), last: quantile(told, 1) },
    hubLostMs: back.hub,
    regionMs: back.region,
    cpuMs: (user + system) / 1000,
  }

  function hasFlash({ core, isAlive }: ChargedHub): boolean {
    return isAlive && core.delivery.view(serviceId).has('main', flashKey)
  }

  function totals() {
    return {
      busyMs: hubs.map(({ busyMs }) => busyMs),
      bytesIn: sum(hubs.map(({ bytesIn }) => bytesIn)),
      bytesOut: sum(hubs.map(({ bytesOut }) => bytesOut)),
      storeCalls: Number(/total_commands_processed:(\d+)/.exec(String(store.ask('INFO', 'stats')))?.[1] ?? 0),
    }
  }

  function sampleOf(atMs: number, before: ReturnType<typeof totals>, now: ReturnType<typeof totals>): Sample {
    const perSecond = (name: 'bytesIn' | 'bytesOut' | 'storeCalls') => ((now[name] - before[name]) * 1000) / sampleMs
    const busy = hubs.flatMap(({ isAlive }, index) =>
      isAlive ? [(now.busyMs[index]! - before.busyMs[index]!) / sampleMs] : [],
    )
    const alive = hubs.filter(({ isAlive }) => isAlive)
    return {
      atMs,
      busiest: Math.max(...busy),
      mean: sum(busy) / busy.length,
      delayMs: Math.max(...alive.map(({ delayMs }) => delayMs)),
      bytesInPerSecond: perSecond('bytesIn'),
      bytesOutPerSecond: perSecond('bytesOut'),
      storeCallsPerSecond: perSecond('storeCalls'),
      storeLoad: (perSecond('storeCalls') * costs.storeUs) / 1e6,
      connected: sensors.connected,
      intervalMs: Math.max(...alive.map(({ core }) => core.collector.governor.pace.intervalMs)),
    }
  }
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0)
}
