import type { TimerHandle } from '@firebreak/core'
import { formatAddress } from '../address/node-address.ts'
import { IdsError, type IdsErrorCode, messageOf } from '../errors.ts'
import { type DecodedSnowflake, decodeSnowflake } from '../snowflake/layout.ts'
import { Snowflake } from '../snowflake/snowflake.ts'
import { sleep } from '../time/in-time.ts'
import { workerLost } from '../workers/worker-registry.ts'
import type { CacheRead, WorkerCache } from './cache-file.ts'
import { type Joined, joinFromFile, joinRegistry, joinStatic, newRecord } from './join.ts'
import { NodeMark } from './node-mark.ts'
import { type ResolvedNodeOptions, resolveNodeOptions, type SnowflakeNodeOptions } from './node-options.ts'
import { PauseWatch } from './pause-watch.ts'

/** A node's status, for health checks and the console. */
export interface SnowflakeStatus {
  readonly state: 'serving' | 'refusing'
  /** Why it refuses. */
  readonly error?: { readonly code: string; readonly message: string }
  readonly workerId: number
  readonly epochMs: number
  /** The time of the last id; 0 before the first. */
  readonly lastMs: number
  /** No id of a later time is issued before a later mark is stored. */
  readonly markMs: number
  readonly cacheFile: string | undefined
  readonly registry:
    | { readonly kind: string; readonly isUp: boolean; readonly address: string; readonly reportedAt: number }
    | undefined
}

/** Errors of a cycle after which no id may be issued; after any other the registry counts as down. */
const stopping: ReadonlySet<string> = new Set([
  'FB_IDS_ADDRESS_TAKEN',
  'FB_IDS_CLOCK_REFUSED',
  'FB_IDS_PEERS_DISAGREE',
  'FB_IDS_PERIODS_DIFFER',
  'FB_IDS_WORKER_LOST',
  'FB_IDS_WORKERS_FULL',
] satisfies IdsErrorCode[])

/** Refusals of a node that has not lost its worker id, as far as it knows. */
const waits: ReadonlySet<string> = new Set(['FB_IDS_CACHE_STALE', 'FB_IDS_PAUSED'] satisfies IdsErrorCode[])

/**
 * A snowflake generator with its own worker id, safe against crashes and faulty clocks and registries.
 *
 * Ids go up to a mark that was stored before: in the cache file if there is one (renewed twice per `markAheadMs`, and
 * during `next` if that was too late), otherwise in the registry. After a crash the next process on this file or record
 * starts beyond the mark, whatever its clock says, or refuses. One cycle every `reportEveryMs` keeps the claim on the
 * address and writes time and mark to the registry; the outcome decides the state:
 *
 * - registry down: a node with a file goes on (for half of `recycleAfterMs`), one without stops at its mark;
 * - address taken or worker id lost: no more ids, an alarm, and a new try to join with every cycle.
 */
export class SnowflakeNode {
  readonly #options: ResolvedNodeOptions
  readonly #file: WorkerCache | undefined
  readonly #mark: NodeMark
  #snowflake: Snowflake
  #joined: Joined
  #refusal: IdsError | undefined
  #isRegistryUp: boolean
  #cycle: Promise<void> | undefined
  readonly #watch: PauseWatch
  #pauses = 0
  #failuresSincePause = 0
  /** The times up to which this process has used worker ids. */
  readonly #usedUntil = new Map<number, number>()
  #timers: TimerHandle[] = []
  #isClosed = false

  private constructor(options: ResolvedNodeOptions, file: WorkerCache | undefined, joined: Joined, watch: PauseWatch) {
    this.#options = options
    this.#file = file
    this.#joined = joined
    this.#isRegistryUp = joined.isConfirmed
    this.#watch = watch
    this.#mark = new NodeMark(options, file, joined, () => this.#refuseAfterPause())
    this.#snowflake = this.#newSnowflake(joined)
  }

  /** Joins and returns a node that serves; rejects, after an alarm, if that would not be safe. */
  static async start(given: SnowflakeNodeOptions): Promise<SnowflakeNode> {
    const options = resolveNodeOptions(given)
    const file = options.cacheFile === undefined ? undefined : options.openCache(options.cacheFile)
    const watch = new PauseWatch(options.runtime, options.markAheadMs / 2)
    try {
      const joined = await join(options, file, watch)
      const node = new SnowflakeNode(options, file, joined, watch)
      await node.#begin()
      return node
    } catch (error) {
      watch.stop()
      file?.close()
      await options.registry?.close()
      options.onAlarm({ code: (error as IdsError).code ?? 'FB_IDS_REGISTRY_DOWN', message: messageOf(error) })
      throw error
    }
  }

  get workerId(): number {
    return this.#joined.workerId
  }

  /** True if a registry assigned the worker id, so that no other node has it. */
  get isRegistered(): boolean {
    return this.#options.registry !== undefined
  }

  /** The next id as decimal text; throws an IdsError if none may be issued now. */
  next(): string {
    if (this.#refusal !== undefined) throw this.#refusal
    return this.#snowflake.next()
  }

  /** The next id as a number that loses no digit. */
  nextBigInt(): bigint {
    if (this.#refusal !== undefined) throw this.#refusal
    return this.#snowflake.nextBigInt()
  }

  /** The next `count` ids. */
  nextMany(count: number): string[] {
    if (this.#refusal !== undefined) throw this.#refusal
    return this.#snowflake.nextMany(count)
  }

  decode(id: string | bigint): DecodedSnowflake {
    return decodeSnowflake(id, this.#options.epochMs)
  }

  /** This node's clock, as queried by its peers. */
  nowMs(): number {
    return this.#options.clock.now()
  }

  status(): SnowflakeStatus {
    const { registry, address, cacheFile, epochMs } = this.#options
    const error = this.#trouble()
    return {
      state: error === undefined ? 'serving' : 'refusing',
      ...(error === undefined ? {} : { error: { code: error.code, message: error.message } }),
      workerId: this.workerId,
      epochMs,
      lastMs: this.#snowflake.lastMs,
      markMs: this.#mark.untilMs,
      cacheFile,
      registry: registry && {
        kind: registry.kind,
        isUp: this.#isRegistryUp,
        address: formatAddress(address),
        reportedAt: this.#joined.reportedAt,
      },
    }
  }

  /** Stops issuing ids, writes how far they went, and releases the address. */
  async close(): Promise<void> {
    if (this.#isClosed) return
    this.#isClosed = true
    for (const timer of this.#timers) timer.cancel()
    this.#watch.stop()
    const wasServing = this.#refusal === undefined
    this.#refusal = new IdsError('FB_IDS_CLOSED', 'this snowflake node is closed')
    await this.#cycle
    const { registry, clock } = this.#options
    const stoppedAt = Math.max(Math.floor(clock.now()), this.#snowflake.lastMs)
    if (wasServing) {
      this.#mark.settle(stoppedAt)
      if (registry !== undefined && this.#isRegistryUp) {
        const record = { ...newRecord(registry, this.#options), timestamp: stoppedAt, mark: stoppedAt }
        await registry.report(this.workerId, record).catch(() => {})
      }
    }
    await registry?.close()
    this.#file?.close()
  }

  /** Waits for the mark of an earlier run to pass, then starts the timers. */
  async #begin(): Promise<void> {
    const { clock, registry, reportEveryMs, markAheadMs, maxBackwardMs, onLog, runtime } = this.#options
    const { afterMs } = this.#joined
    let leftMs = afterMs - clock.now()
    if (leftMs >= 0) onLog(`waiting ${Math.ceil(leftMs)} ms for the mark of the last run to pass`)
    // The clock may be set meanwhile, in either direction: check often.
    while (leftMs >= 0) {
      const pauseMs = Math.min(100, leftMs + 1)
      await sleep(runtime.timers, pauseMs)
      const stillMs = afterMs - clock.now()
      if (stillMs > leftMs + maxBackwardMs) {
        const sentence = `the clock went back while worker ${this.workerId} waited for the mark of its last run`
        throw new IdsError('FB_IDS_CLOCK_REFUSED', sentence, { behindMs: Math.round(stillMs) })
      }
      leftMs = stillMs
    }
    const { workerId, isConfirmed } = this.#joined
    onLog(`worker ${workerId}, ${isConfirmed ? 'confirmed' : 'from the cache file: the registry is down'}`)
    if (!isConfirmed)
      this.#alarm('FB_IDS_REGISTRY_DOWN', `the registry is down; worker ${workerId} is from the cache file`)
    const every = (periodMs: number, job: () => void) => {
      this.#timers.push(runtime.timers.setInterval(job, periodMs))
    }
    every(markAheadMs / 2, () => this.#renewMark())
    if (registry !== undefined) every(reportEveryMs, () => this.#startCycle())
    this.#noticePause()
    // Callers that wait for the start get a node that serves.
    if (this.#refusal !== undefined) await this.#cycle
  }

  #renewMark(): void {
    try {
      this.#refuseAfterPause()
      if (this.#file !== undefined) this.#mark.renew(this.#joined)
    } catch {
      // Retried when the mark is reached: `next` then says what is wrong.
    }
  }

  /** One cycle at a time: a registry that hangs must not gather a queue of them. */
  #startCycle(): void {
    this.#cycle ??= this.#report().finally(() => {
      this.#cycle = undefined
      // It began before the pause, so its answers may be from before it too.
      if (this.#refusal?.code === 'FB_IDS_PAUSED' && !this.#isClosed) this.#startCycle()
    })
  }

  /**
   * A paused process did not report, and may have lost its worker id to a node that waited for the report. It asks
   * before it issues another id; if the registry is down, it continues with its file as before.
   */
  #noticePause(): void {
    const { maxPauseMs, onLog } = this.#options
    const pausedMs = Math.round(this.#watch.take())
    if (pausedMs <= maxPauseMs || !this.isRegistered || this.#refusal !== undefined) return
    const sentence = `the process was paused for ${pausedMs} ms; asking the registry whether worker ${this.workerId} still belongs to this node`
    this.#refusal = new IdsError('FB_IDS_PAUSED', sentence, { pausedMs })
    this.#pauses++
    this.#failuresSincePause = 0
    onLog(sentence)
    this.#startCycle()
  }

  #refuseAfterPause(): void {
    this.#noticePause()
    if (this.#refusal !== undefined) throw this.#refusal
  }

  async #report(): Promise<void> {
    const { registry, onLog } = this.#options
    const pauses = this.#pauses
    try {
      if (this.#refusal === undefined) await this.#abandonFarAhead()
      if (this.#refusal !== undefined || !this.#joined.isConfirmed) await this.#rejoin()
      else {
        await registry!.claim({ waitMs: 0 })
        const record = newRecord(registry!, this.#options, this.#snowflake.lastMs)
        await registry!.report(this.workerId, record)
        this.#joined = { ...this.#joined, reportedAt: record.timestamp }
        this.#mark.confirm(record.timestamp)
      }
      if (!this.#isRegistryUp) onLog(`the ${registry!.kind} registry has recovered`)
      this.#isRegistryUp = true
    } catch (error) {
      this.#noticePause()
      // A failure before or during a pause says nothing about the registry now: ask again.
      const isOld = pauses !== this.#pauses && (error as IdsError).code === 'FB_IDS_REGISTRY_DOWN'
      if (!isOld) this.#failed(error as IdsError)
    }
    this.#noticePause()
  }

  /** Back after the registry was down at the start, or after the worker id was lost. */
  async #rejoin(): Promise<void> {
    const before = this.#joined
    const joined = await joinRegistry(this.#options.registry!, readCache(this.#file, this.#options), this.#options, {
      waitMs: 0,
      // Started from the file, and the recovered registry does not know it: another node may now get this number.
      onNew: () => {
        forget(this.#file, this.#options)
        if (this.#refusal === undefined || waits.has(this.#refusal.code))
          this.#stop(workerLost(before.workerId, this.#options.address))
      },
      isClosed: () => this.#isClosed,
      isOurs: (workerId) =>
        workerId === before.workerId && (this.#refusal === undefined || waits.has(this.#refusal.code)),
    })
    this.#usedUntil.set(before.workerId, Math.max(this.#snowflake.lastMs, this.#usedUntil.get(before.workerId) ?? 0))
    this.#joined = joined
    // The same worker id, in use all the while: the generator knows its last id better than any mark.
    if (joined.workerId !== before.workerId || this.#refusal !== undefined) {
      // Including a number that this process had long ago: an emptied registry may assign it again.
      const afterMs = Math.max(joined.afterMs, this.#usedUntil.get(joined.workerId) ?? 0)
      this.#snowflake = this.#newSnowflake({ ...joined, afterMs })
      this.#options.onLog(`worker ${joined.workerId} instead of ${before.workerId}`)
    }
    this.#mark.adopt(joined)
    this.#refusal = undefined
  }

  /**
   * A clock that jumped far ahead and back makes this worker id unusable for that long: the registry is told how far
   * its ids went, so that the number is not reassigned before that time, and the node joins again.
   */
  async #abandonFarAhead(): Promise<void> {
    const { abandonAfterMs, registry, clock } = this.#options
    const behindMs = this.#snowflake.lastMs - clock.now()
    if (behindMs <= abandonAfterMs || !this.#joined.isConfirmed) return
    await registry!.claim({ waitMs: 0 })
    await registry!.report(this.workerId, newRecord(registry!, this.#options, this.#snowflake.lastMs))
    const sentence = `the clock is ${Math.round(behindMs)} ms behind the last id of worker ${this.workerId}, more than abandonAfterMs (${abandonAfterMs})`
    this.#stop(new IdsError('FB_IDS_CLOCK_BACKWARD', sentence, { behindMs: Math.round(behindMs) }))
  }

  /** No more ids from this moment; the next cycle tries to join again. */
  #stop(error: IdsError): void {
    if (this.#refusal?.code !== error.code) this.#alarm(error.code, error.message)
    this.#refusal ??= error
    if (stopping.has(error.code)) this.#refusal = error
    if (error.code === 'FB_IDS_WORKER_LOST') forget(this.#file, this.#options)
  }

  #failed(error: IdsError): void {
    const { recycleAfterMs, clock, registry } = this.#options
    const isPaused = this.#refusal?.code === 'FB_IDS_PAUSED' && !stopping.has(error.code)
    // A connection that ended during the pause fails once whatever the state of the registry: ask again over a new one.
    if (isPaused && this.#failuresSincePause++ === 0) return
    const wasUp = this.#isRegistryUp
    this.#isRegistryUp = false
    if (stopping.has(error.code)) {
      this.#stop(error)
      return
    }
    if (isPaused) this.#refusal = undefined
    if (wasUp)
      this.#alarm(
        error.code,
        `${error.message}; ids go on from the ${this.#file === undefined ? 'last mark' : 'cache file'}`,
      )
    const aloneMs = clock.now() - this.#joined.reportedAt
    if (aloneMs > recycleAfterMs / 2 && this.#refusal === undefined) {
      const sentence = `the ${registry!.kind} registry has not confirmed worker ${this.workerId} for ${Math.round(aloneMs)} ms; another node may get its id`
      this.#refusal = new IdsError('FB_IDS_CACHE_STALE', sentence, { aloneMs: Math.round(aloneMs) })
      this.#alarm('FB_IDS_CACHE_STALE', sentence)
    }
  }

  /** What the next call of `next` would throw. */
  #trouble(): IdsError | undefined {
    if (this.#refusal !== undefined) return this.#refusal
    try {
      this.#snowflake.check()
    } catch (error) {
      return error as IdsError
    }
    return undefined
  }

  #newSnowflake({ workerId, afterMs }: Joined): Snowflake {
    const { epochMs, maxBackwardMs, clock, runtime } = this.#options
    return new Snowflake({ workerId, epochMs, maxBackwardMs, clock, runtime, afterMs, mark: this.#mark })
  }

  #alarm(code: string, message: string): void {
    this.#options.onAlarm({ code, message })
  }
}

function readCache(file: WorkerCache | undefined, { address, cacheFile }: ResolvedNodeOptions): CacheRead {
  const cache: CacheRead = file?.read() ?? { kind: 'missing', why: 'there is none' }
  if (cache.kind !== 'valid') return cache
  const { ip, port } = cache.worker
  if (ip === address.ip && port === address.port) return cache
  return { kind: 'foreign', why: `${cacheFile} is of ${formatAddress({ ip, port })}` }
}

/** Records in the file that its worker id is lost: a start while the registry is down must not continue with it. */
function forget(file: WorkerCache | undefined, options: ResolvedNodeOptions): void {
  const cache = readCache(file, options)
  if (cache.kind === 'valid' && !cache.worker.isLost) file!.write({ ...cache.worker, isLost: true })
}

async function join(options: ResolvedNodeOptions, file: WorkerCache | undefined, watch: PauseWatch): Promise<Joined> {
  const { registry, workerId, claimWaitMs, maxPauseMs } = options
  if (registry === undefined) return joinStatic(workerId!, readCache(file, options), options)
  for (;;) {
    watch.take()
    try {
      return await joinRegistry(registry, readCache(file, options), options, {
        waitMs: claimWaitMs,
        onNew: () => forget(file, options),
      })
    } catch (error) {
      if ((error as IdsError).code !== 'FB_IDS_REGISTRY_DOWN') throw error
      // This process was paused: whether the registry is up is unknown.
      if (watch.take() > maxPauseMs) continue
      return joinFromFile(readCache(file, options), error, options)
    }
  }
}
