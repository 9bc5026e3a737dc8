import { loadScript, type Redis, type RedisClient, type RedisReply, replyErrorCode, toRedis } from '@firebreak/redis'
import { checkAddress, formatAddress, type NodeAddress, parseAddress } from '../address/node-address.ts'
import { IdsError, messageOf } from '../errors.ts'
import { workerCount } from '../snowflake/layout.ts'
import {
  addressTaken,
  type ClaimOptions,
  defaultRecycleAfterMs,
  defaultSessionTimeoutMs,
  newOwner,
  parseRecord,
  pickRecyclable,
  type RegisteredWorker,
  type RegistryOptions,
  type WorkerRecord,
  type WorkerRegistry,
  workerLost,
  workersFull,
} from './worker-registry.ts'

const claimScript = loadScript(new URL('./claim.lua', import.meta.url))
const liveScript = loadScript(new URL('./live.lua', import.meta.url))
const swapScript = loadScript(new URL('./swap.lua', import.meta.url))

/** How nodes register in Redis. */
export interface RedisRegistryOptions extends RegistryOptions {
  /** An ioredis or node-redis client. */
  readonly redis: RedisClient
  /** For one command; client libraries queue commands while they are not connected. @default 3000 */
  readonly requestTimeoutMs?: number
}

/**
 * The registry in Redis: two hashes in one slot, `{ROOT}:leaf_forever` (worker id → record) and `{ROOT}:leaf_temporary`
 * (address → claim, timed by Redis' clock). A failover that loses the last writes can lose a registration; the node
 * that made it sees that at its next report and takes another worker id.
 */
export class RedisRegistry implements WorkerRegistry {
  readonly kind = 'redis'
  readonly owner: string = newOwner()
  readonly #redis: Redis
  readonly #address: NodeAddress
  readonly #name: string
  readonly #forever: string
  readonly #temporary: string
  readonly #sessionTimeoutMs: number
  readonly #recycleAfterMs: number
  readonly #requestTimeoutMs: number

  constructor(options: RedisRegistryOptions) {
    this.#address = checkAddress(options.address)
    this.#name = formatAddress(this.#address)
    const root = options.root ?? 'firebreak:ids'
    this.#forever = `{${root}}:leaf_forever`
    this.#temporary = `{${root}}:leaf_temporary`
    this.#sessionTimeoutMs = options.sessionTimeoutMs ?? defaultSessionTimeoutMs
    this.#recycleAfterMs = options.recycleAfterMs ?? defaultRecycleAfterMs
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 3000
    this.#redis = toRedis(options.redis)
  }

  async claim({ waitMs, predecessor = '' }: ClaimOptions): Promise<void> {
    const deadline = performance.now() + waitMs
    for (;;) {
      const args = [this.#name, this.owner, predecessor, this.#sessionTimeoutMs]
      const holder = await this.#ask(() => this.#redis.run(claimScript, [this.#temporary], args))
      if (holder === '') return
      if (performance.now() >= deadline) throw addressTaken(this.#address, String(holder))
      await new Promise((resolve) => setTimeout(resolve, 50))
    }
  }

  async own(): Promise<RegisteredWorker[]> {
    return (await this.#workers()).filter(({ record }) => formatAddress(record) === this.#name)
  }

  async peers(): Promise<NodeAddress[]> {
    return (await this.#live()).filter((name) => name !== this.#name).flatMap((name) => parseAddress(name) ?? [])
  }

  async register(record: WorkerRecord): Promise<number> {
    for (;;) {
      const taken = new Set((await this.#all()).map(([workerId]) => workerId))
      const free = Array.from({ length: workerCount }, (_, index) => index).find((index) => !taken.has(index))
      if (free !== undefined) {
        if (await this.#swap(free, '', record)) return free
        continue
      }
      const old = pickRecyclable(await this.#workers(), await this.#live(), record.timestamp, this.#recycleAfterMs)
      if (old === undefined) throw workersFull(this.#recycleAfterMs)
      if (await this.#swap(old.workerId, old.version, record)) return old.workerId
    }
  }

  async adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void> {
    if (!(await this.#swap(worker.workerId, worker.version, record))) throw workerLost(worker.workerId, this.#address)
  }

  async report(workerId: number, record: WorkerRecord): Promise<void> {
    const found = String((await this.#ask(() => this.#redis.send(['HGET', this.#forever, workerId]))) ?? '')
    const isOurs = parseRecord(found)?.owner === this.owner
    if (!isOurs || !(await this.#swap(workerId, found, record))) throw workerLost(workerId, this.#address)
  }

  async close(): Promise<void> {
    await this.#ask(() => this.#redis.run(claimScript, [this.#temporary], [this.#name, this.owner, '', 0])).catch(
      () => {},
    )
  }

  async #swap(workerId: number, expected: string, record: WorkerRecord): Promise<boolean> {
    const args = [workerId, expected, JSON.stringify(record)]
    return Number(await this.#ask(() => this.#redis.run(swapScript, [this.#forever], args))) === 1
  }

  async #all(): Promise<[workerId: number, text: string][]> {
    const reply = await this.#ask(() => this.#redis.send(['HGETALL', this.#forever]))
    // RESP2 gives a flat list, RESP3 a map.
    const flat = Array.isArray(reply) ? reply.map(String) : Object.entries(reply as Record<string, string>).flat()
    return flat.flatMap((text, index) =>
      index % 2 === 0 ? [[Number(text), flat[index + 1]!] as [number, string]] : [],
    )
  }

  async #workers(): Promise<RegisteredWorker[]> {
    return (await this.#all()).flatMap(([workerId, text]) => {
      const record = parseRecord(text)
      return record === undefined || !(workerId < workerCount) ? [] : [{ workerId, record, version: text }]
    })
  }

  async #live(): Promise<string[]> {
    return ((await this.#ask(() => this.#redis.run(liveScript, [this.#temporary], []))) as RedisReply[]).map(String)
  }

  /** One command with a deadline: a client that waits for its connection must not make us wait too. */
  async #ask(command: () => Promise<RedisReply>): Promise<RedisReply> {
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<never>((_, reject) => {
      timer = setTimeout(
        () => reject(new Error(`no answer within ${this.#requestTimeoutMs} ms`)),
        this.#requestTimeoutMs,
      )
    })
    try {
      return await Promise.race([command(), late])
    } catch (error) {
      const what = replyErrorCode(error) === undefined ? 'cannot be asked' : 'answered with an error'
      throw new IdsError('FB_IDS_REGISTRY_DOWN', `Redis ${what} (${messageOf(error)})`, {}, { cause: error })
    } finally {
      clearTimeout(timer)
    }
  }
}
