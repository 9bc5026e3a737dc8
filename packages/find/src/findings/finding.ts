import { randomUUID } from 'node:crypto'
import type { Topology } from '../connect/topology.ts'
import type { TypeSummary } from '../keys/big-key-collector.ts'
import type { FoundKey } from '../keys/found-key.ts'
import type { PrefixNode } from '../keys/prefix-tree.ts'

/** What was searched for. */
export type FindingKind = 'hot' | 'big' | 'slots'

/** How it was searched for. */
export type FindingMethod = 'scan' | 'monitor' | 'capture' | 'server' | 'rdb' | 'live' | 'slot-stats' | 'commandstats'

/** Load of one server. */
export interface ServerLoad {
  readonly node: string
  readonly slots: number
  readonly operationsPerSecond: number
  /** Share of all servers' operations, 0 to 1. */
  readonly share: number
  readonly cpuMicrosecondsPerSecond?: number
  readonly bytesInPerSecond?: number
  readonly bytesOutPerSecond?: number
  readonly keys?: number
  /** Its operations relative to the mean; above 1.5 it is called skewed. */
  readonly skew: number
}

/** Load of one slot. */
export interface SlotLoad {
  readonly slot: number
  readonly node: string
  readonly operationsPerSecond?: number
  readonly cpuMicrosecondsPerSecond?: number
  readonly bytesPerSecond?: number
  readonly keys?: number
  readonly share: number
}

/** The result of a finder: the one format of `--json`, the hub's `POST /v1/findings`, and the input of `advise`. */
export interface Finding {
  readonly version: 1
  /** A UUID, so that a finding that is sent twice is stored once. */
  readonly id: string
  readonly kind: FindingKind
  readonly method: FindingMethod
  readonly startedAtMs: number
  readonly tookMs: number
  /** The servers that were examined, or the file; never a password. */
  readonly source: readonly string[]
  readonly topology: 'standalone' | 'cluster' | 'sentinel' | 'file'
  /** False if it ended early or something could not be read. */
  readonly isComplete: boolean
  /** Keys scanned, or commands seen. */
  readonly scanned: number
  readonly keys: readonly FoundKey[]
  readonly types?: readonly TypeSummary[]
  readonly prefixes?: PrefixNode
  readonly nodes?: readonly ServerLoad[]
  readonly slots?: readonly SlotLoad[]
  /** Counters of the method, such as a capture's gaps and drops. */
  readonly counts?: Readonly<Record<string, number>>
  readonly notes: readonly string[]
}

/** The parts of a finding that only its finder knows. */
export type FindingParts = Pick<Finding, 'isComplete' | 'scanned' | 'keys' | 'notes'> &
  Partial<Pick<Finding, 'types' | 'prefixes' | 'nodes' | 'slots' | 'counts'>>

/** A finding from servers. */
export function newFinding(
  kind: FindingKind,
  method: FindingMethod,
  topology: Pick<Topology, 'kind' | 'masters'>,
  startedAtMs: number,
  parts: FindingParts,
): Finding {
  return {
    ...head(kind, method, startedAtMs),
    source: topology.masters.map(({ address }) => address),
    topology: topology.kind,
    ...parts,
  }
}

/** A finding from a file or a network. */
export function newFileFinding(
  kind: FindingKind,
  method: FindingMethod,
  source: string,
  startedAtMs: number,
  parts: FindingParts,
): Finding {
  return { ...head(kind, method, startedAtMs), source: [source], topology: 'file', ...parts }
}

function head(kind: FindingKind, method: FindingMethod, startedAtMs: number) {
  return { version: 1 as const, id: randomUUID(), kind, method, startedAtMs, tookMs: Date.now() - startedAtMs }
}
