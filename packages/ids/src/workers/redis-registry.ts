import { loadScript, type Redis, type RedisClient, type RedisReply, replyErrorCode, toRedis } from '@firebreak/redis'
import type { NodeAddress } from '../address/node-address.ts'
import { IdsError, messageOf } from '../errors.ts'
import { inTime } from '../time/in-time.ts'
import { RegistryMember, type StoredRecord } from './registry-member.ts'
import type {
  ClaimOptions,
  RegisteredWorker,
  RegistryOptions,
  WorkerRecord,
  WorkerRegistry,
} from './worker-registry.ts'

const claimScript = loadScript(new URL('./claim.lua', import.meta.url))
const liveScript = loadScript(new URL('./live.lua', import.meta.url))
const swapScript = loadScript(new URL('./swap.lua', import.meta.url))

/** Options for registering nodes in Redis. */
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
  readonly #member: RegistryMember
  readonly #redis: Redis
  readonly #forever: string
  readonly #temporary: string
  readonly #requestTimeoutMs: number

  constructor(options: RedisRegistryOptions) {
    this.#member = new RegistryMember(options)
    const root = options.root ?? 'firebreak:ids'
    this.#forever = `{${root}}:leaf_forever`
    this.#temporary = `{${root}}:leaf_temporary`
    this.#requestTimeoutMs = options.requestTimeoutMs ?? 3000
    this.#redis = toRedis(options.redis)
  }

  get owner(): string {
    return this.#member.owner
  }

  claim({ waitMs, predecessor = '' }: ClaimOptions): Promise<void> {
    return this.#member.claim(waitMs, async () => {
      const holder = await this.#claim(predecessor, this.#member.sessionTimeoutMs)
      return holder === '' ? undefined : holder
    })
  }

  async own(): Promise<RegisteredWorker[]> {
    return this.#member.own(await this.#all())
  }

  async peers(): Promise<NodeAddress[]> {
    return this.#member.peers(await this.#live())
  }

  async fleet(): Promise<RegisteredWorker[]> {
    return this.#member.fleet(await this.#all(), await this.#live())
  }

  register(record: WorkerRecord): Promise<number> {
    const table = {
      all: () => this.#all(),
      live: () => this.#live(),
      write: (workerId: number, value: WorkerRecord, version = '') => this.#swap(workerId, version, value),
    }
    return this.#member.register(table, record)
  }

  async adopt(worker: RegisteredWorker, record: WorkerRecord): Promise<void> {
    if (!(await this.#swap(worker.workerId, worker.version, record))) throw this.#member.lost(worker.workerId)
  }

  async report(workerId: number, record: WorkerRecord): Promise<void> {
    const found = String((await this.#ask(() => this.#redis.send(['HGET', this.#forever, workerId]))) ?? '')
    this.#member.checkOwned(workerId, found)
    if (!(await this.#swap(workerId, found, record))) throw this.#member.lost(workerId)
  }

  async close(): Promise<void> {
    await this.#claim('', 0).catch(() => {})
  }

  /** Takes or renews the claim, or with `standsMs` 0 releases it; returns the owner of the address, '' for us. */
  async #claim(predecessor: string, standsMs: number): Promise<string> {
    const args = [this.#member.name, this.owner, predecessor, standsMs]
    return String(await this.#ask(() => this.#redis.run(claimScript, [this.#temporary], args)))
  }

  async #swap(workerId: number, expected: string, record: WorkerRecord): Promise<boolean> {
    const args = [workerId, expected, JSON.stringify(record)]
    return Number(await this.#ask(() => this.#redis.run(swapScript, [this.#forever], args))) === 1
  }

  async #all(): Promise<StoredRecord[]> {
    const reply = await this.#ask(() => this.#redis.send(['HGETALL', this.#forever]))
    // RESP2 returns a flat list, RESP3 a map.
    const flat = Array.isArray(reply) ? reply.map(String) : Object.entries(reply as Record<string, string>).flat()
    return flat.flatMap((field, index) => {
      const text = flat[index + 1]!
      return index % 2 === 0 ? [{ workerId: Number(field), text, version: text }] : []
    })
  }

  async #live(): Promise<string[]> {
    return ((await this.#ask(() => this.#redis.run(liveScript, [this.#temporary], []))) as RedisReply[]).map(String)
  }

  /** One command with a deadline: a client that waits for its connection must not make us wait too. */
  async #ask(command: () => Promise<RedisReply>): Promise<RedisReply> {
    try {
      const sentence = `no answer within ${this.#requestTimeoutMs} ms`
      return await inTime(command(), this.#member.runtime.timers, this.#requestTimeoutMs, sentence)
    } catch (error) {
      const what = replyErrorCode(error) === undefined ? 'cannot be asked' : 'answered with an error'
      throw new IdsError('FB_IDS_REGISTRY_DOWN', `Redis ${what} (${messageOf(error)})`, {}, { cause: error })
    }
  }
}
