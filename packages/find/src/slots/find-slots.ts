import type { RespClient } from '@firebreak/core/resp'
import { runCapture } from '../capture/hot-capture.ts'
import { list } from '../connect/replies.ts'
import { discover, readingConnections, type ServerNode } from '../connect/topology.ts'
import { type Finding, newFinding, type ServerLoad, type SlotLoad } from '../findings/finding.ts'
import { escapeKey } from '../keys/escape-key.ts'
import type { FoundKey } from '../keys/found-key.ts'
import { heaviest } from '../keys/merge-big-keys.ts'
import { type MonitorOptions, watchOne } from '../monitor/hot-monitor.ts'
import { pause } from '../scan/pause.ts'
import { Probe } from '../scan/probe.ts'
import { probeKeys } from '../scan/scan-node.ts'
import { type ServerCounters, sampleNode } from './node-sample.ts'

/** How to break load down by node and slot. */
export interface FindSlotsOptions extends MonitorOptions {
  /** How to attribute accesses to slots and keys if the server does not count by slot. @default 'none' */
  readonly keysBy?: 'none' | 'monitor' | 'capture'
  /** A capture to read, or the interface, for `capture`. */
  readonly file?: string
  readonly interface?: string
  /** A node with more than this many times the mean load is skewed. @default 1.5 */
  readonly skewAbove?: number
}

/**
 * Finds the node that carries more than its share, then the slots, then the keys.
 *
 * Two readings of every server's counters give operations, CPU time and bytes for each node. Slots come from CLUSTER
 * SLOT-STATS (Valkey 8, Redis 8.2) if available, otherwise from the accesses that a capture or a MONITOR of the busiest
 * node sees. Keys come from those accesses, or from the LFU counters of the keys in the hottest slots.
 */
export async function findSlots(options: FindSlotsOptions): Promise<Finding> {
  const startedAtMs = Date.now()
  const { durationMs = 5000, skewAbove = 1.5, keysBy = 'none', signal, top = 20 } = options
  const topology = await discover(options.target, options)
  const opened = await readingConnections(topology, false)
  const notes: string[] = []
  try {
    const before = await Promise.all(opened.map(({ connection }) => sampleNode(connection, 'first')))
    const capture = keysBy === 'capture' ? captureWhile(options, opened, durationMs) : undefined
    capture?.catch(() => {})
    await pause(durationMs, signal)
    const after = await Promise.all(opened.map(({ connection }) => sampleNode(connection, 'second')))
    const nodes = nodeLoads(
      opened.map(({ node }) => node),
      before,
      after,
    )
    const hasSlotStats = after.every(countsLoad)
    let slots = hasSlotStats
      ? slotLoads(
          opened.map(({ node }) => node),
          before,
          after,
        )
      : []
    let keys: readonly FoundKey[] = []
    const busiest = nodes.reduce((a, b) => (b.operationsPerSecond > a.operationsPerSecond ? b : a))
    const found = opened.find(({ node }) => node.address === busiest.node)!
    if (capture !== undefined) {
      const { reader, seconds } = await capture
      keys = reader.counter.hottest(top, seconds).map((key) => ({ ...key, node: ownerOf(key.slot!, topology.masters) }))
      if (!hasSlotStats) slots = seenSlots(reader.counter.slots(), seconds, topology.masters)
    } else if (keysBy === 'monitor') {
      const watched = await watchOne(found.node, found.connection, options)
      notes.push(...watched.notes)
      keys = watched.counter.hottest(top, watched.seconds).map((key) => ({ ...key, node: busiest.node }))
      if (!hasSlotStats) slots = seenSlots(watched.counter.slots(), watched.seconds, topology.masters)
    } else if (hasSlotStats) {
      keys = await keysOfSlots(opened, slots.slice(0, 5), top)
    }
    if (!hasSlotStats && keysBy === 'none') {
      const why = after.some(({ slots }) => slots !== undefined)
        ? 'this server has CLUSTER SLOT-STATS but does not count load by it ("CONFIG SET cluster-slot-stats-enabled yes" on each node)'
        : 'this server does not count by slot (CLUSTER SLOT-STATS: Valkey 8, Redis 8.2)'
      notes.push(`${why}: use --monitor or --capture to see slots and keys`)
    }
    for (const node of nodes) {
      if (node.skew > skewAbove && nodes.length > 1) {
        notes.push(
          `${node.node} carries ${(node.share * 100).toFixed(0)} % of all operations, ${node.skew.toFixed(1)} times the mean`,
        )
      }
    }
    return newFinding('slots', hasSlotStats ? 'slot-stats' : 'commandstats', topology, startedAtMs, {
      isComplete: !signal?.aborted,
      scanned: Math.round(
        nodes.reduce((sum, { operationsPerSecond }) => sum + operationsPerSecond, 0) * (durationMs / 1000),
      ),
      keys,
      nodes,
      slots: slots.slice(0, Math.max(top, 20)),
      notes,
    })
  } finally {
    for (const { connection } of opened) connection.close()
  }
}

/** Also false for a server that only counts the keys of its slots, the default of Valkey and Redis. */
function countsLoad({ slots }: ServerCounters): boolean {
  if (slots === undefined) return false
  const [first] = slots.values()
  return first === undefined || (first.cpuMicroseconds ?? first.bytesIn ?? first.bytesOut) !== undefined
}

function captureWhile(options: FindSlotsOptions, opened: readonly { node: ServerNode }[], durationMs: number) {
  return runCapture({
    ...options,
    durationMs,
    ports: opened.map(({ node }) => node.target.port ?? 6379),
  })
}

function nodeLoads(
  nodes: readonly ServerNode[],
  before: readonly ServerCounters[],
  after: readonly ServerCounters[],
): ServerLoad[] {
  const rates = nodes.map((node, index) => {
    const [a, b] = [before[index]!, after[index]!]
    const seconds = Math.max(0.001, (b.atMs - a.atMs) / 1000)
    // A counter that went down was reset in between (CONFIG RESETSTAT, a restart).
    const rate = (of: (sample: ServerCounters) => number) => Math.max(0, of(b) - of(a)) / seconds
    return {
      node: node.address,
      slots: (node.slots ?? []).reduce((sum, [from, to]) => sum + to - from + 1, 0),
      operationsPerSecond: rate(({ operations }) => operations),
      cpuMicrosecondsPerSecond: rate(({ cpuMicroseconds }) => cpuMicroseconds),
      bytesInPerSecond: rate(({ bytesIn }) => bytesIn),
      bytesOutPerSecond: rate(({ bytesOut }) => bytesOut),
      keys: b.keys,
    }
  })
  const total = rates.reduce((sum, { operationsPerSecond }) => sum + operationsPerSecond, 0)
  const mean = total / rates.length
  return rates
    .map((rate) => ({
      ...rate,
      share: total === 0 ? 0 : rate.operationsPerSecond / total,
      skew: mean === 0 ? 1 : rate.operationsPerSecond / mean,
    }))
    .sort((a, b) => b.operationsPerSecond - a.operationsPerSecond)
}

function slotLoads(
  nodes: readonly ServerNode[],
  before: readonly ServerCounters[],
  after: readonly ServerCounters[],
): SlotLoad[] {
  const loads: (SlotLoad & { weight: number })[] = []
  nodes.forEach((node, index) => {
    const seconds = Math.max(0.001, (after[index]!.slotsAtMs - before[index]!.slotsAtMs) / 1000)
    for (const [slot, now] of after[index]!.slots!) {
      const then = before[index]!.slots?.get(slot)
      const rate = (a: number | undefined, b: number | undefined) =>
        a === undefined || b === undefined ? undefined : Math.max(0, b - a) / seconds
      const cpu = rate(then?.cpuMicroseconds, now.cpuMicroseconds)
      const bytesIn = rate(then?.bytesIn, now.bytesIn)
      const bytesOut = rate(then?.bytesOut, now.bytesOut)
      loads.push({
        slot,
        node: node.address,
        keys: now.keys,
        ...(cpu === undefined ? {} : { cpuMicrosecondsPerSecond: cpu }),
        ...(bytesIn === undefined && bytesOut === undefined
          ? {}
          : { bytesPerSecond: (bytesIn ?? 0) + (bytesOut ?? 0) }),
        share: 0,
        // CPU time if it is counted, otherwise bytes.
        weight: cpu ?? (bytesIn ?? 0) + (bytesOut ?? 0),
      })
    }
  })
  const total = loads.reduce((sum, { weight }) => sum + weight, 0)
  return loads
    .sort((a, b) => b.weight - a.weight || a.slot - b.slot)
    .map(({ weight, ...load }) => ({ ...load, share: total === 0 ? 0 : weight / total }))
}

function seenSlots(
  seen: readonly { slot: number; accesses: number; bytes: number }[],
  seconds: number,
  masters: readonly ServerNode[],
): SlotLoad[] {
  const total = seen.reduce((sum, { accesses }) => sum + accesses, 0)
  return seen.map(({ slot, accesses, bytes }) => ({
    slot,
    node: ownerOf(slot, masters),
    operationsPerSecond: seconds > 0 ? accesses / seconds : 0,
    bytesPerSecond: seconds > 0 ? bytes / seconds : 0,
    share: total === 0 ? 0 : accesses / total,
  }))
}

function ownerOf(slot: number, masters: readonly ServerNode[]): string {
  const owner = masters.find(({ slots }) => slots?.some(([from, to]) => slot >= from && slot <= to))
  return (owner ?? masters[0]!).address
}

/** The hottest keys of some slots by their LFU counters, each asked of its own node; none if the policy is not LFU. */
async function keysOfSlots(
  opened: readonly { readonly node: ServerNode; readonly connection: RespClient }[],
  slots: readonly SlotLoad[],
  top: number,
): Promise<FoundKey[]> {
  const found: FoundKey[] = []
  for (const { slot, node } of slots) {
    const { connection } = opened.find((one) => one.node.address === node)!
    const reply = await connection.send(['CLUSTER', 'GETKEYSINSLOT', slot, 1000]).catch(() => [])
    const keys = list(reply) as readonly Uint8Array[]
    await probeKeys(connection, keys, [
      {
        probe: new Probe(['OBJECT', 'FREQ']),
        take: (key, frequency) => {
          if (typeof frequency === 'number') found.push({ key: escapeKey(key), node, slot, frequency })
        },
      },
    ])
  }
  return heaviest(found, top, ({ frequency }) => frequency ?? 0)
}
