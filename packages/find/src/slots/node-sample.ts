import type { RespClient } from '@firebreak/core/resp'
import { fields, infoFields, list, number } from '../connect/replies.ts'

/** Counters of one server at one moment. */
export interface ServerCounters {
  readonly atMs: number
  readonly slotsAtMs: number
  readonly operations: number
  readonly cpuMicroseconds: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly keys: number
  /** By slot, if the server keeps such counters. */
  readonly slots: ReadonlyMap<number, SlotSample> | undefined
}

/** Counters of one slot; those that the server is not configured to keep are undefined. */
export interface SlotSample {
  readonly keys: number
  readonly cpuMicroseconds: number | undefined
  readonly bytesIn: number | undefined
  readonly bytesOut: number | undefined
}

/** Our own commands, which are not load. */
const own = new Set([
  'cmdstat_info',
  'cmdstat_cluster|slot-stats',
  'cmdstat_client|setname',
  'cmdstat_replconf',
  'cmdstat_ping',
])

/** Which of two readings it is. The answer about slots is large: its cost must not fall between the two and look like load. */
export type Reading = 'first' | 'second'

/** Reads a server's counters: INFO commandstats and stats everywhere, CLUSTER SLOT-STATS if available. */
export async function sampleNode(connection: RespClient, reading: Reading): Promise<ServerCounters> {
  const early = reading === 'first' ? await sampleSlots(connection) : undefined
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
    ...(early ?? (await sampleSlots(connection))),
  }
}

async function sampleSlots(connection: RespClient): Promise<Pick<ServerCounters, 'slots' | 'slotsAtMs'>> {
  const slots = await slotStats(connection)
  return { slots, slotsAtMs: performance.now() }
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
