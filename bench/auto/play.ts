import { parseKeyText, VarintWriter, writeReportEntry } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { HubCore, MemoryStore } from '@firebreak/hub'
import { FakeClock, fakeRuntime } from '@firebreak/testkit'
import type { Action } from './oracle.ts'
import { ticksPerSecond, type Workload } from './workload.ts'

const cluster = 'main'
const service = 'shop'
const stepMs = 1000 / ticksPerSecond
/** Before the workload begins, the hub watches its first seconds' load: production does not begin at a peak either. */
const warmUpSeconds = 3

/** What was done, and how long keys took to be handled is in it. */
export interface Played {
  readonly actions: readonly Action[]
  readonly reasons: ReadonlyMap<number, string>
}

/**
 * Plays a workload to a whole hub, the one that production runs, on a clock of its own: reports every 100 ms, as a shield sends them,
 * and once a second the node's `INFO` as a sensor would measure it, with the load that is left after what the hub's table keeps away.
 */
export async function play(workload: Workload, rule: Record<string, unknown>): Promise<Played> {
  const clock = new FakeClock()
  const runtime = { ...fakeRuntime(1, clock), random: () => 0.5 }
  const pace = { reportIntervalMs: stepMs, maxReportsPerSecond: 1e9, maxEntriesPerSecond: 1e9, loadOf: () => 0 }
  const core = await HubCore.open(new MemoryStore(), {
    hubId: 'hub',
    runtime,
    ...pace,
    maxInstanceAccessesPerSecond: 1e9,
    maxInstanceKeysPerSecond: 1e9,
  })
  core.start()
  await core.putRule(parseRule({ id: 'rule', glob: '*', windowMs: 1000, strategy: 'LocalCache', ...rule }), 'bench')
  const ids = new Map(workload.keys.map((key, id) => [key, id]))
  const open = new Map<number, number>()
  const actions: Action[] = []
  const reasons = new Map<number, string>()
  let tick = 0
  core.delivery.join(service, {
    onDelta({ set, removed }) {
      for (const { key: text, reason } of set) {
        const id = ids.get(parseKeyText(text)!)!
        if (!open.has(id)) open.set(id, tick)
        reasons.set(id, reason)
      }
      for (const { key: text } of removed) {
        const id = ids.get(parseKeyText(text)!)!
        const from = open.get(id)
        if (from !== undefined) actions.push({ key: id, from, to: tick })
        open.delete(id)
      }
    },
  })
  let sequence = 0
  let served = 0
  const ticks = workload.seconds * ticksPerSecond
  for (let index = -warmUpSeconds * ticksPerSecond; index < ticks; index++) {
    // What is decided on a report holds from the next one on.
    tick = Math.max(0, index + 1)
    // In the quiet seconds before, what comes is the beginning of the workload.
    const { counts, total } = workload.tick(index < 0 ? (index + ticks) % ticksPerSecond : index)
    clock.step(stepMs)
    core.collector.collectBinary(reportOf(workload, counts, total, clock.now()), 0, ++sequence)
    clock.advance(0)
    for (const [key, count] of counts) if (!open.has(key)) served += count
    await core.settled()
    clock.advance(0)
    if (sequence % ticksPerSecond !== 0) continue
    const cpuMs = Math.min(1, served / workload.capacityPerSecond) * 1000
    const sample = {
      redisClusterId: cluster,
      node: 'redis:6379',
      spanMs: 1000,
      commands: served,
      cpuMs,
      roundTripMs: 0.2,
    }
    core.keys.autopilot.takeLoad([sample], 'host', clock.now())
    served = 0
  }
  for (const [key, from] of open) actions.push({ key, from, to: ticks })
  await core.close()
  return { actions, reasons }
}

function reportOf({ keys }: Workload, counts: ReadonlyMap<number, number>, total: number, now: number): Uint8Array {
  const entries = new VarintWriter(counts.size * 24 + 64)
  for (const [id, count] of counts) writeReportEntry(entries, keys[id]!, count, 0, 0)
  const report = new VarintWriter(entries.length + 64)
  for (const _ of ['collected', 'sent']) report.varint(Math.floor(now))
  for (const text of [service, 'host', 'host']) report.text(text)
  report.varint(1)
  report.text(cluster)
  report.varint(total)
  report.varint(counts.size)
  report.raw(entries.finish())
  return report.finish()
}
