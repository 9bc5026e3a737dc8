import type { Runtime } from '@firebreak/core'
import { formatAddress, type NodeAddress } from '../address/node-address.ts'
import { IdsError } from '../errors.ts'

/** What a registry permanently keeps about a worker id. */
export interface WorkerRecord {
  readonly ip: string
  readonly port: number
  /** The node's clock when it wrote this. */
  readonly timestamp: number
  /** The node issues no id of a later time before it has written a later mark. After a clean stop: the timestamp. */
  readonly mark: number
  /** The process that wrote this, by a random name. */
  readonly owner: string
  /** The node has a cache file and keeps running without the registry, past the mark. */
  readonly runsAlone: boolean
  /** The node holds the worker id but has not issued its first id yet. */
  readonly isHeld: boolean
  /** How often the node reports, and how long it holds a new worker id; undefined if an earlier version wrote this. */
  readonly reportEveryMs?: number
  readonly settleMs?: number
}

/** A record with its worker id, and the version that the registry needs to change exactly this state. */
export interface RegisteredWorker {
  readonly workerId: number
  readonly record: WorkerRecord
  readonly version: string
}

/**
 * Where nodes get their worker ids. ZooKeeper, etcd and Redis pass one contract suite.
 *
 * A node first *claims* its address: an entry that lives as long as the process reports, so that two nodes with the
 * same address cannot both start. Records outlive it: a worker id belongs to an address until it is recycled.
 */
export interface WorkerRegistry {
  readonly kind: 'zookeeper' | 'etcd' | 'redis'
  /** A random name of this process, included in everything it writes. */
  readonly owner: string
  /** Claims the address, or renews the claim. `FB_IDS_ADDRESS_TAKEN` if another live node has it. */
  claim(options: ClaimOptions): Promise<void>
  /** Every record of this address. */
  own(): Promise<RegisteredWorker[]>
  /** The addresses of the other live nodes. */
  peers(): Promise<NodeAddress[]>
  /** The records of the other live nodes. */
  fleet(): Promise<RegisteredWorker[]>
  /** Takes a free worker id; recycles one if all are taken. `FB_IDS_WORKERS_FULL` if none is safe. */
  register(record: WorkerRecord): Promise<number>
  /** Takes a record of this address over, unless it changed since it was read. */
  adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void>
  /** Writes the time and mark. `FB_IDS_WORKER_LOST` if the record is gone or has another owner. */
  report(workerId: number, record: WorkerRecord): Promise<void>
  /** Releases the address. */
  close(): Promise<void>
}

/** How an address is claimed. */
export interface ClaimOptions {
  /** How long to wait for a dead process' claim to lapse. */
  readonly waitMs: number
  /** The owner of a process that is known to be dead, as its file's lock shows: its claim is taken at once. */
  readonly predecessor?: string
}

/** Options of all registries. */
export interface RegistryOptions {
  readonly address: NodeAddress
  /** How long a claim outlives its silent process. @default 6000 */
  readonly sessionTimeoutMs?: number
  /** How long a worker id must be silent before another node may take it. @default 86400000 (a day) */
  readonly recycleAfterMs?: number
  /** A prefix for all names in the registry, for several fleets on one. @default none */
  readonly root?: string
  /** @default the system's */
  readonly runtime?: Runtime
}

export const defaultSessionTimeoutMs = 6000
export const defaultRecycleAfterMs = 86_400_000

/** Parses a record; Leaf's own `{ip, port, timestamp}` is valid too. Undefined if it is not one. */
export function parseRecord(text: string): WorkerRecord | undefined {
  let value: Partial<WorkerRecord> & { port?: unknown; timestamp?: unknown }
  try {
    value = JSON.parse(text) as Partial<WorkerRecord>
  } catch {
    return undefined
  }
  const { ip, timestamp, mark = timestamp, owner = '', runsAlone = true, isHeld = false } = value ?? {}
  // Leaf writes the port as text.
  const port = Number(value?.port)
  if (typeof ip !== 'string' || !Number.isInteger(port)) return undefined
  if (!Number.isSafeInteger(timestamp) || !Number.isSafeInteger(mark) || typeof owner !== 'string') return undefined
  return {
    ip,
    port,
    timestamp: timestamp!,
    mark: mark!,
    owner,
    runsAlone: runsAlone !== false,
    isHeld: isHeld === true,
    ...(Number.isFinite(value.reportEveryMs) && { reportEveryMs: value.reportEveryMs! }),
    ...(Number.isFinite(value.settleMs) && { settleMs: value.settleMs! }),
  }
}

/**
 * The worker that may be recycled, the longest silent first; undefined if none is safe.
 *
 * Safe means: no live node has its address, and by this node's clock its mark is `recycleAfterMs` ago. In return, a
 * `SnowflakeNode` cut off from the registry stops after half of that time, so the two clocks may differ by the other
 * half.
 */
export function pickRecyclable(
  workers: readonly RegisteredWorker[],
  live: readonly string[],
  nowMs: number,
  recycleAfterMs: number,
): RegisteredWorker | undefined {
  return workers
    .filter(({ record }) => !live.includes(formatAddress(record)) && nowMs - record.mark > recycleAfterMs)
    .sort((a, b) => a.record.mark - b.record.mark || a.workerId - b.workerId)[0]
}

/** No worker id is free and none may be recycled. */
export function workersFull(recycleAfterMs: number): IdsError {
  return new IdsError(
    'FB_IDS_WORKERS_FULL',
    `all 1,024 worker ids are taken and none has been silent for ${recycleAfterMs} ms; remove records of nodes that are gone for good`,
    { recycleAfterMs },
  )
}

/** Another live node has this address. */
export function addressTaken(address: NodeAddress, owner: string): IdsError {
  const text = formatAddress(address)
  return new IdsError(
    'FB_IDS_ADDRESS_TAKEN',
    `a live node already has the address ${text} ; give each node its own ip and port`,
    { address: text, owner },
  )
}

/** The record of this worker id is gone or has another owner. */
export function workerLost(workerId: number, address: NodeAddress): IdsError {
  return new IdsError(
    'FB_IDS_WORKER_LOST',
    `worker id ${workerId} no longer belongs to ${formatAddress(address)}; it was recycled, removed or taken over`,
    { workerId },
  )
}
