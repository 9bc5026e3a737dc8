import type { Runtime, TimerHandle } from '@firebreak/core'
import { loadScript, type Redis } from '@firebreak/redis'
import { SaleError } from '../errors.ts'
import { isDead, processName } from './process-name.ts'

const claimScript = loadScript(new URL('./claim-worker.lua', import.meta.url))

/** What a source of ids reports about its worker id. */
export interface IdWorker {
  /** The worker id inside its ids. */
  readonly workerId?: number
  /** True if a registry assigned it, so that no other process has it. */
  readonly isRegistered?: boolean
}

const leaseMs = 15_000
const renewEveryMs = 5000
/** Sources of this process that hold or want a claim, with the number of sales that use them. */
const sources = new WeakMap<object, { readonly name: string; users: number }>()
const living = new Set<string>()

/**
 * Keeps two processes from creating order ids with the same fixed worker id: their ids would collide, and an order of
 * one voucher would be taken for an order of another.
 *
 * The claim is a key in Redis that expires 15 s after its holder last renewed it. A holder's name contains host,
 * process, thread and pid namespace, so that a process restarted after a crash need not wait for that.
 */
export class WorkerClaim {
  readonly #redis: Redis
  readonly #runtime: Runtime
  readonly #key: string
  readonly #workerId: number
  readonly #source: { readonly name: string; users: number }
  #heldUntil = Number.NEGATIVE_INFINITY
  #asking: Promise<void> | undefined
  #timer: TimerHandle | undefined
  #isClosed = false

  private constructor(redis: Redis, ids: object, workerId: number, runtime: Runtime) {
    this.#redis = redis
    this.#runtime = runtime
    this.#workerId = workerId
    this.#key = `seckill:ids:${workerId}`
    const known = sources.get(ids) ?? {
      name: processName(runtime.newId()),
      users: 0,
    }
    known.users++
    sources.set(ids, known)
    living.add(known.name)
    this.#source = known
  }

  /** A claim if the ids carry a fixed worker id, otherwise undefined. */
  static of(redis: Redis, ids: IdWorker, runtime: Runtime): WorkerClaim | undefined {
    if (ids.workerId === undefined || ids.isRegistered === true) return undefined
    return new WorkerClaim(redis, ids, ids.workerId, runtime)
  }

  get isHeld(): boolean {
    return this.#runtime.clock.now() < this.#heldUntil
  }

  /** Resolves once the worker id is this source's; rejects while another has it. */
  async hold(voucherId: string): Promise<void> {
    this.#asking ??= this.#ask(voucherId).finally(() => {
      this.#asking = undefined
    })
    await this.#asking
  }

  async close(): Promise<void> {
    this.#isClosed = true
    this.#timer?.cancel()
    this.#source.users--
    if (this.#source.users > 0) return
    living.delete(this.#source.name)
    if (!this.isHeld) return
    this.#heldUntil = Number.NEGATIVE_INFINITY
    // If Redis is unreachable, the claim expires by itself.
    await this.#run('', 0).catch(() => {})
  }

  async #ask(voucherId: string): Promise<void> {
    const askedAt = this.#runtime.clock.now()
    let holder = await this.#run('', leaseMs)
    if (holder !== '' && isDead(holder, living)) holder = await this.#run(holder, leaseMs)
    if (holder !== '') {
      this.#heldUntil = Number.NEGATIVE_INFINITY
      const [, host, pid] = holder.split('|')
      throw new SaleError(
        'FB_SALE_WORKER_TAKEN',
        voucherId,
        `worker id ${this.#workerId} is already making order ids in process ${pid} on ${host} ; give each process its own`,
      )
    }
    this.#heldUntil = askedAt + leaseMs
    this.#timer?.cancel()
    if (this.#isClosed) return
    // After a failed renewal the claim expires; the next purchase asks again and reports the problem.
    this.#timer = this.#runtime.timers.setTimeout(() => void this.hold(voucherId).catch(() => {}), renewEveryMs)
  }

  async #run(dead: string, standsMs: number): Promise<string> {
    return (await this.#redis.run(claimScript, [this.#key], [this.#source.name, dead, standsMs])) as string
  }
}
