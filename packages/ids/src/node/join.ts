import { formatAddress } from '../address/node-address.ts'
import { IdsError, messageOf } from '../errors.ts'
import { sleep } from '../time/in-time.ts'
import type { RegisteredWorker, WorkerRecord, WorkerRegistry } from '../workers/worker-registry.ts'
import type { CachedWorker, CacheRead } from './cache-file.ts'
import type { ResolvedNodeOptions } from './node-options.ts'
import { askPeerClocks } from './peer-clocks.ts'

/** A worker id that this node may use now. */
export interface Joined {
  readonly workerId: number
  /** Ids must be of later times than this. */
  readonly afterMs: number
  /** The owner in the registry's record. */
  readonly owner: string
  /** When the registry confirmed the worker id, by this node's clock. */
  readonly reportedAt: number
  /** False if the registry was down and the file was used instead. */
  readonly isConfirmed: boolean
}

const closeCheckMs = 50

/** Callbacks while getting a worker id. */
export interface JoinEvents {
  /** How long to wait for the claim of a process that died with this address. */
  readonly waitMs: number
  /** No record can be continued: a running node must stop and give up its file before it requests a new worker id. */
  readonly onNew?: () => void
  /** True once the worker id is no longer wanted. */
  readonly isClosed?: () => boolean
  /** Whether this process has a worker id and has not been told that it lost it: then it need not be held again. */
  readonly isOurs?: (workerId: number) => boolean
}

const unusable = {
  missing: ['MISSING', 'was never written'],
  broken: ['BROKEN', 'is damaged'],
  foreign: ['FOREIGN', 'belongs to another node'],
} as const

/**
 * Gets a worker id from the registry.
 *
 * Which record may a node continue with? Two processes must never share a worker id, also when they were given one
 * address by mistake and one of them is cut off from the registry, running on its file. So an address alone proves
 * nothing: a record is taken over if this node's own file names the same owner, or if its owner had no file and so
 * stopped at the mark. Otherwise the node takes a new worker id; the old record is eventually recycled.
 */
export async function joinRegistry(
  registry: WorkerRegistry,
  cache: CacheRead,
  options: ResolvedNodeOptions,
  { waitMs, onNew, isClosed = () => false, isOurs = () => false }: JoinEvents,
): Promise<Joined> {
  const cached = cache.kind === 'valid' ? cache.worker : undefined
  await registry.claim({ waitMs, ...(cached === undefined ? {} : { predecessor: cached.owner }) })
  refuseOtherPeriods(await registry.fleet(), options)
  const all = await registry.own()
  const own = await abandonFarAhead(all, cached, registry, options)
  for (const { record } of own)
    refuseClockBehind(record.timestamp, `the registry’s record of ${formatAddress(record)}`, options)

  const isCached = ({ workerId, record }: RegisteredWorker) =>
    workerId === cached?.workerId && record.owner === cached.owner
  const mine =
    own.find(({ record }) => record.owner === registry.owner) ??
    own.find(isCached) ??
    own.find(({ record }) => !record.runsAlone)
  // Its holding time was cut short; or it was lost and has returned with an older registry, while another node may
  // still be using it.
  const mustBeHeld =
    mine !== undefined &&
    (mine.record.isHeld ||
      (mine.record.owner === registry.owner && !isOurs(mine.workerId)) ||
      (isCached(mine) && cached?.isLost === true))
  if (mine === undefined || mustBeHeld) {
    onNew?.()
    const held = { ...newRecord(registry, options), isHeld: true }
    let workerId: number
    if (mine === undefined) {
      await refuseClockOffPeers(registry, options)
      workerId = await registry.register(held)
    } else {
      workerId = mine.workerId
      await registry.adopt(mine, held)
    }
    const reportedAt = await settle(registry, workerId, options, isClosed)
    // An emptied registry may have returned the very number whose ids this node’s file records.
    const afterMs = cached?.workerId === workerId ? cached.mark : 0
    return { workerId, afterMs, owner: registry.owner, reportedAt, isConfirmed: true }
  }
  const afterMs = mine.record.owner === registry.owner ? 0 : markOf(mine, isCached(mine) ? cached : undefined)
  const record = newRecord(registry, options)
  await registry.adopt(mine, record)
  return { workerId: mine.workerId, afterMs, owner: registry.owner, reportedAt: record.timestamp, isConfirmed: true }
}

/**
 * Holds a new worker id without using it, until every live node has reported: a registry that lost its data, or its
 * last writes, may have just reassigned the number of a running node. That node notices with its next report and stops.
 * Returns the time of the last report.
 */
async function settle(
  registry: WorkerRegistry,
  workerId: number,
  options: ResolvedNodeOptions,
  isClosed: () => boolean,
): Promise<number> {
  const { settleMs, reportEveryMs, runtime, onLog } = options
  const until = runtime.clock.now() + settleMs
  if (settleMs > 0) onLog(`worker ${workerId} is new; waiting ${settleMs} ms in case another node is using it`)
  for (;;) {
    const reportAt = Math.min(runtime.clock.now() + reportEveryMs, until)
    while (runtime.clock.now() < reportAt) {
      const pauseMs = Math.max(0, Math.min(closeCheckMs, reportAt - runtime.clock.now()))
      await sleep(runtime.timers, pauseMs)
      if (isClosed()) throw new IdsError('FB_IDS_CLOSED', 'the node was closed before it had a worker id')
    }
    await registry.claim({ waitMs: 0 })
    // If the record is gone or has another owner by now, this throws, and no id was issued.
    const isHeld = runtime.clock.now() < until
    const record = { ...newRecord(registry, options), isHeld }
    await registry.report(workerId, record)
    if (!isHeld) return record.timestamp
  }
}

/**
 * The records that this node may continue with. A clock that jumped far ahead and back leaves a record whose time may
 * be hours away: it is written back with everything known about it, so that its number is not reassigned before that
 * time has passed, and the node takes another worker id, whose ids cannot repeat those issued.
 */
async function abandonFarAhead(
  own: readonly RegisteredWorker[],
  cached: CachedWorker | undefined,
  registry: WorkerRegistry,
  options: ResolvedNodeOptions,
): Promise<RegisteredWorker[]> {
  const nowMs = options.clock.now()
  const kept: RegisteredWorker[] = []
  const isOfFile = ({ workerId, record }: RegisteredWorker) =>
    cached?.workerId === workerId && cached.owner === record.owner
  // A file without a matching record still shows how far the clock was.
  if (cached !== undefined && !own.some(isOfFile) && cached.timestamp - nowMs <= options.abandonAfterMs)
    refuseClockBehind(cached.timestamp, 'the cache file', options)
  for (const worker of own) {
    const { record, workerId } = worker
    const file = isOfFile(worker) ? cached : undefined
    const timestamp = Math.max(record.timestamp, file?.timestamp ?? 0)
    const aheadMs = Math.round(timestamp - nowMs)
    if (aheadMs <= options.abandonAfterMs) {
      kept.push({ ...worker, record: { ...record, timestamp } })
      continue
    }
    const mark = Math.max(record.mark, file?.mark ?? 0)
    const isKnown = timestamp === record.timestamp && mark === record.mark
    if (!isKnown) await registry.adopt(worker, { ...record, timestamp, mark })
    const message = `the clock is ${aheadMs} ms behind worker ${workerId}, more than abandonAfterMs (${options.abandonAfterMs}); leaving its number alone and taking another`
    options.onAlarm({ code: 'FB_IDS_WORKER_ABANDONED', message })
  }
  return kept
}

/**
 * The latest time that an earlier process' ids can have. Its file is written more often than the registry and takes
 * precedence; a file older than the record was restored from somewhere.
 */
function markOf({ record }: RegisteredWorker, cached: CachedWorker | undefined): number {
  if (cached === undefined) return record.mark
  return cached.timestamp >= record.timestamp ? cached.mark : Math.max(cached.mark, record.mark)
}

/** Continues with the file's worker id while the registry is down, or says why it cannot; never makes one up. */
export function joinFromFile(cache: CacheRead, registryError: unknown, options: ResolvedNodeOptions): Joined {
  const why = `the registry is down (${messageOf(registryError)})`
  const refuse = (code: 'MISSING' | 'BROKEN' | 'FOREIGN' | 'STALE', what: string) =>
    new IdsError(
      `FB_IDS_CACHE_${code}`,
      `${why} and ${what}; start again when the registry is back`,
      {},
      { cause: registryError },
    )
  if (options.cacheFile === undefined) throw refuse('MISSING', 'no cacheFile is configured')
  const place = `the cache file ${options.cacheFile}`
  if (cache.kind !== 'valid') {
    const [code, what] = unusable[cache.kind]
    throw refuse(code, `${place} ${what} (${cache.why})`)
  }
  const { worker } = cache
  const nowMs = options.clock.now()
  if (nowMs - worker.reportedAt > options.recycleAfterMs / 2) {
    throw refuse('STALE', `${place} was last confirmed at ${new Date(worker.reportedAt).toISOString()}`)
  }
  if (worker.isLost) throw refuse('STALE', `${place} is for worker ${worker.workerId}, which this node has lost`)
  refuseClockBehind(worker.timestamp, 'the cache file', options)
  const { workerId, owner, reportedAt } = worker
  return { workerId, afterMs: worker.mark, owner, reportedAt, isConfirmed: false }
}

/** A fixed worker id, with the file's mark if there is a file. */
export function joinStatic(workerId: number, cache: CacheRead, options: ResolvedNodeOptions): Joined {
  const nowMs = options.clock.now()
  if (cache.kind === 'broken') {
    const sentence = `the cache file ${options.cacheFile} is damaged (${cache.why}); remove it once you are sure that the clock is right`
    throw new IdsError('FB_IDS_CACHE_BROKEN', sentence)
  }
  const cached: CachedWorker | undefined =
    cache.kind === 'valid' && cache.worker.workerId === workerId ? cache.worker : undefined
  if (cached !== undefined) refuseClockBehind(cached.timestamp, 'the cache file', options)
  return { workerId, afterMs: cached?.mark ?? 0, owner: '', reportedAt: nowMs, isConfirmed: true }
}

/** What this node now writes to the registry; its time never goes back, even if the clock does. */
export function newRecord(registry: WorkerRegistry, options: ResolvedNodeOptions, lastMs = 0): WorkerRecord {
  const timestamp = Math.max(Math.floor(options.clock.now()), lastMs)
  const { ip, port } = options.address
  const runsAlone = options.cacheFile !== undefined
  return {
    ip,
    port,
    timestamp,
    mark: timestamp + options.registryAheadMs,
    owner: registry.owner,
    runsAlone,
    isHeld: false,
    reportEveryMs: options.reportEveryMs,
    settleMs: options.settleMs,
  }
}

/**
 * A new worker id is held until every node that may be alive has reported: each must report within the time for which
 * the others hold theirs. Nodes with the same configuration agree by themselves.
 */
function refuseOtherPeriods(fleet: readonly RegisteredWorker[], options: ResolvedNodeOptions): void {
  const { reportEveryMs, settleMs } = options
  for (const { workerId, record } of fleet) {
    const theirs = { reportEveryMs: record.reportEveryMs ?? reportEveryMs, settleMs: record.settleMs ?? settleMs }
    const isTooSoon = theirs.reportEveryMs > reportEveryMs && settleMs < 2 * theirs.reportEveryMs
    const isTooLate = reportEveryMs > theirs.reportEveryMs && theirs.settleMs < 2 * reportEveryMs
    if (!isTooSoon && !isTooLate) continue
    const [slow, hold] = isTooSoon ? [theirs.reportEveryMs, settleMs] : [reportEveryMs, theirs.settleMs]
    throw new IdsError(
      'FB_IDS_PERIODS_DIFFER',
      `worker ${workerId} at ${formatAddress(record)} reports every ${theirs.reportEveryMs} ms and this node every ${reportEveryMs} ms: one of them would hold a new worker id for ${hold} ms only, less than twice ${slow} ms, and might use it while another does; give all nodes the same reportEveryMs, or a settleMs of ${2 * slow} and more first`,
      { workerId, reportEveryMs, settleMs },
    )
  }
}

function refuseClockBehind(seenMs: number, where: string, options: ResolvedNodeOptions): void {
  const behindMs = seenMs - options.clock.now()
  if (behindMs <= options.maxBackwardMs) return
  throw new IdsError(
    'FB_IDS_CLOCK_REFUSED',
    `the clock is ${Math.round(behindMs)} ms behind the time in ${where}; set it right and start again`,
    { behindMs: Math.round(behindMs) },
  )
}

/** A new node has no history to check its clock against, so it asks its live peers. */
async function refuseClockOffPeers(registry: WorkerRegistry, options: ResolvedNodeOptions): Promise<void> {
  const peers = await registry.peers()
  if (peers.length === 0) return
  const { clock, runtime, askTime } = options
  const clocks = await askPeerClocks(peers, { clock, steady: runtime.clock, askTime })
  const { answered, silent, averageOffsetMs, medianOffsetMs } = clocks
  options.onLog(
    `clock against ${answered} of ${peers.length} peers: ${averageOffsetMs} ms from their average, ${medianOffsetMs} ms from their median`,
  )
  if (answered === 0) {
    const message = `none of the ${peers.length} live peers reported its time (${silent.join(', ')}); the clock of this new node is unchecked`
    options.onAlarm({ code: 'FB_IDS_PEERS_DISAGREE', message })
    return
  }
  if (Math.abs(averageOffsetMs) <= options.peerThresholdMs) return
  throw new IdsError(
    'FB_IDS_PEERS_DISAGREE',
    `the clock is ${averageOffsetMs} ms from the average of ${answered} live peers (${medianOffsetMs} ms from their median), more than peerThresholdMs (${options.peerThresholdMs}); set it right and start again`,
    { averageOffsetMs, medianOffsetMs, answered },
  )
}
