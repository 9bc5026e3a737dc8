import { asListener, type Clock, InvalidOptionError, plainLines, type Runtime, systemRuntime } from '@firebreak/core'
import { checkAddress, type NodeAddress } from '../address/node-address.ts'
import { checkWorkerId, defaultEpochMs } from '../snowflake/layout.ts'
import { defaultRecycleAfterMs, type WorkerRegistry } from '../workers/worker-registry.ts'
import { CacheFile, type WorkerCache } from './cache-file.ts'
import { type AskTime, askTimeOverHttp } from './peer-clocks.ts'

/** A problem for a human: the node refused to start, stopped issuing ids, or lost its registry. */
export interface IdsAlarm {
  readonly code: string
  readonly message: string
}

/** How a snowflake node gets its worker id and keeps its promises. */
export interface SnowflakeNodeOptions {
  /** Where the worker id comes from. @default none: then `workerId` is required */
  readonly registry?: WorkerRegistry
  /** A fixed worker id, 0 to 1023, for those who want no registry. */
  readonly workerId?: number
  /** This node's address in the registry. Required with a registry. */
  readonly address?: NodeAddress
  /**
   * Where worker id and mark are kept on the local disk. With it, a node can start and run while its registry is down.
   * @default none: the node stops when its registry is unreachable for longer than `registryAheadMs`
   */
  readonly cacheFile?: string
  /** Milliseconds since 1970 at which ids start. @default 1288834974657 */
  readonly epochMs?: number
  /** A step back of the clock up to this is waited out. @default 5 */
  readonly maxBackwardMs?: number
  /** How far ahead the file's mark is written; a restart after a crash waits for it. @default 1000 */
  readonly markAheadMs?: number
  /** How often the time is written to the registry. @default 3000 */
  readonly reportEveryMs?: number
  /** How far ahead the registry's mark is written. @default 9000 */
  readonly registryAheadMs?: number
  /** How far a new node's clock may be from the average of its live peers. @default 1000 */
  readonly peerThresholdMs?: number
  /** How long a start waits for the claim of a node that died with this address. @default 9000 */
  readonly claimWaitMs?: number
  /**
   * How long a new worker id is held in the registry before its first id: every live node reports within that time, and
   * one whose worker id is gone or taken stops. So no id is repeated if the registry was emptied, restored from a
   * backup, or lost its last writes in a failover. @default twice `reportEveryMs`
   */
  readonly settleMs?: number
  /**
   * If the clock is further behind the last id than this, the node does not wait: it gives up its worker id, with an
   * alarm, and takes a new one from the registry. @default 300000 (5 minutes)
   */
  readonly abandonAfterMs?: number
  /** Same as the registry's: a node cut off from it stops after half of this. @default 86400000 (a day) */
  readonly recycleAfterMs?: number
  /** Called for everything that needs a human. @default process.emitWarning */
  readonly onAlarm?: (alarm: IdsAlarm) => void
  /** Receives a sentence about each thing the node does. @default none */
  readonly onLog?: (message: string) => void
  /** The clock used in ids. @default the runtime's wall clock */
  readonly clock?: Clock
  /** @default the system's */
  readonly runtime?: Runtime
  /** How a live peer is asked for its time. @default over HTTP */
  readonly askTime?: AskTime
  /** How `cacheFile` is opened. @default on the local disk, with a lock beside it */
  readonly openCache?: (path: string) => WorkerCache
}

/** The options with every default filled in. */
export interface ResolvedNodeOptions {
  readonly registry: WorkerRegistry | undefined
  readonly workerId: number | undefined
  readonly address: NodeAddress
  readonly cacheFile: string | undefined
  readonly epochMs: number
  readonly maxBackwardMs: number
  readonly markAheadMs: number
  readonly reportEveryMs: number
  readonly registryAheadMs: number
  readonly peerThresholdMs: number
  readonly claimWaitMs: number
  readonly settleMs: number
  /** A process that was paused for longer asks its registry before it issues another id. */
  readonly maxPauseMs: number
  readonly abandonAfterMs: number
  readonly recycleAfterMs: number
  readonly onAlarm: (alarm: IdsAlarm) => void
  readonly onLog: (message: string) => void
  readonly clock: Clock
  readonly runtime: Runtime
  readonly askTime: AskTime
  readonly openCache: (path: string) => WorkerCache
}

const peerTimeoutMs = 1000

/** Checks the options and fills the defaults in. */
export function resolveNodeOptions(options: SnowflakeNodeOptions): ResolvedNodeOptions {
  const { registry, workerId, address, runtime = systemRuntime } = options
  if ((registry === undefined) === (workerId === undefined)) {
    throw new InvalidOptionError('workerId', workerId, 'given if there is no registry, and left out if there is one')
  }
  if (workerId !== undefined) checkWorkerId(workerId)
  if (registry !== undefined && address === undefined) {
    throw new InvalidOptionError('address', address, 'given if there is a registry')
  }
  const reportEveryMs = positive('reportEveryMs', options.reportEveryMs ?? 3000)
  const registryAheadMs = positive('registryAheadMs', options.registryAheadMs ?? 9000)
  if (registryAheadMs <= reportEveryMs) {
    throw new InvalidOptionError('registryAheadMs', registryAheadMs, `more than reportEveryMs (${reportEveryMs})`)
  }
  const markAheadMs = positive('markAheadMs', options.markAheadMs ?? 1000)
  const settleMs = options.settleMs ?? reportEveryMs * 2
  return {
    registry,
    workerId,
    address: address === undefined ? { ip: '127.0.0.1', port: 0 } : checkAddress(address),
    cacheFile: options.cacheFile,
    epochMs: options.epochMs ?? defaultEpochMs,
    maxBackwardMs: options.maxBackwardMs ?? 5,
    markAheadMs,
    reportEveryMs,
    registryAheadMs,
    peerThresholdMs: positive('peerThresholdMs', options.peerThresholdMs ?? 1000),
    claimWaitMs: options.claimWaitMs ?? 9000,
    settleMs,
    maxPauseMs: maxPauseMs(settleMs, reportEveryMs, markAheadMs),
    abandonAfterMs: positive('abandonAfterMs', options.abandonAfterMs ?? 300_000),
    recycleAfterMs: positive('recycleAfterMs', options.recycleAfterMs ?? defaultRecycleAfterMs),
    onAlarm: asListener(
      options.onAlarm ??
        (({ code, message }) => process.emitWarning(plainLines(message), { type: 'FirebreakIds', code })),
    ),
    onLog: asListener(options.onLog ?? (() => {})),
    clock: options.clock ?? runtime.wallClock,
    runtime,
    askTime: options.askTime ?? askTimeOverHttp(runtime.timers, peerTimeoutMs),
    openCache: options.openCache ?? ((path) => CacheFile.open(path)),
  }
}

/**
 * A lost worker id passes to another node no sooner than `settleMs` after the last report. One period passes between
 * two reports, and half a period is left for the report itself; the rest may pass unnoticed. No bound if nobody waits
 * for reports.
 */
function maxPauseMs(settleMs: number, reportEveryMs: number, markAheadMs: number): number {
  if (settleMs <= reportEveryMs) return Number.POSITIVE_INFINITY
  return Math.max(settleMs - 1.5 * reportEveryMs, markAheadMs)
}

function positive(option: string, value: number): number {
  if (Number.isFinite(value) && value > 0) return value
  throw new InvalidOptionError(option, value, 'a number of milliseconds above 0')
}
