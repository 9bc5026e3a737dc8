import type { RespClient } from '@firebreak/core/resp'
import { fields, infoFields, list, number } from '../connect/replies.ts'

/** Counters of one server at one moment. */
export interface NodeSample {
  readonly atMs: number
  readonly operations: number
  readonly cpuMicroseconds: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly keys: number
  /** By slot, where the server keeps such counters. */
  readonly slots: ReadonlyMap<number, SlotSample> | undefined
}

/** Counters of one slot; what the server was not told to count is undefined. */
export interface SlotSample {
  readonly keys: number
  readonly cpuMicroseconds: number | undefined
  readonly bytesIn: number | undefined
  readonly bytesOut: number | undefined
}

/** Commands that we send ourselves to look; they are not load. */
const own = new Set([
  'cmdstat_info',
  'cmdstat_cluster|slot-stats',
  'cmdstat_client|setname',
  'cmdstat_replconf',
  'cmdstat_ping',
])

/** Reads a server's counters: INFO commandstats and stats everywhere, CLUSTER SLOT-STATS where there. */
export async function sampleNode(connection: RespClient): Promise<NodeSample> {
  const [commands, stats, keyspace] = await Promise.all([
    connection.send(['INFO', 'commandstats']),
    connection.send(['INFO', 'stats']),
    connection.send(['INFO', 'keyspace']),
  ])
  let operations = 0
  let cpuMicroseconds = 0
  for (const [name, value] of infoFields(commands)) {
    if (own.has(name)) continue
    operations += Number(/calls=(\d+)/.exec(value)?.[1] ?? 0)
    cpuMicroseconds += Number(/usec=(\d+)/.exec(value)?.[1] ?? 0)
  }
  const traffic = infoFields(stats)
  let keys = 0
  for (const value of infoFields(keyspace).values()) keys += Number(/keys=(\d+)/.exec(value)?.[1] ?? 0)
  return {
    atMs: performance.now(),
    operations,
    cpuMicroseconds,
    bytesIn: Number(traffic.get('total_net_input_bytes') ?? 0),
    bytesOut: Number(traffic.get('total_net_output_bytes') ?? 0),
    keys,
    slots: await slotStats(connection),
  }
}

async function slotStats(connection: RespClient): Promise<ReadonlyMap<number, SlotSample> | undefined> {
  const reply = await connection.send(['CLUSTER', 'SLOT-STATS', 'SLOTSRANGE', 0, 16383]).catch(() => undefined)
  if (reply === undefined) return undefined
  const slots = new Map<number, SlotSample>()
  for (const entry of list(reply)) {
    const [slot, values] = list(entry)
    const metrics = fields(values)
    const metric = (name: string) => (metrics.has(name) ? number(metrics.get(name)) : undefined)
    slots.set(number(slot), {
      keys: metric('key-count') ?? 0,
      cpuMicroseconds: metric('cpu-usec'),
      bytesIn: metric('network-bytes-in'),
      bytesOut: metric('network-bytes-out'),
    })
  }
  return slots
}
