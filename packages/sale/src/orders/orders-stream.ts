import { loadScript, type Redis, replyErrorCode } from '@firebreak/redis'
import { type SaleKeys, saleKeys } from '../sale-keys.ts'
import { deletedIds, entriesOf, type StreamEntry, streamEntries } from './stream-entry.ts'

const buryScript = loadScript(new URL('./bury.lua', import.meta.url))
const trimScript = loadScript(new URL('./trim.lua', import.meta.url))

/** The consumer group of the workers. */
export const group = 'orders'

/** One voucher's orders stream, as one worker of the group sees it. */
export class OrdersStream {
  readonly voucherId: string
  readonly #redis: Redis
  readonly #keys: SaleKeys
  readonly #worker: string

  constructor(redis: Redis, voucherId: string, worker: string) {
    this.#redis = redis
    this.voucherId = voucherId
    this.#keys = saleKeys(voucherId)
    this.#worker = worker
  }

  async makeGroup(): Promise<void> {
    try {
      await this.#send(['XGROUP', 'CREATE', this.#keys.orders, group, '0', 'MKSTREAM'])
    } catch (error) {
      if (replyErrorCode(error) !== 'BUSYGROUP') throw error
    }
  }

  /** Entries that no worker has seen. */
  async readNew(count: number): Promise<StreamEntry[]> {
    return streamEntries(await this.#read('>', count))
  }

  /** Entries after an id that this worker has taken but not settled, and those of them deleted meanwhile. */
  async readHeld(after: string, count: number): Promise<{ entries: StreamEntry[]; deleted: string[] }> {
    const reply = await this.#read(after, count)
    return { entries: streamEntries(reply), deleted: deletedIds(reply) }
  }

  #read(from: string, count: number): Promise<unknown> {
    const { orders } = this.#keys
    return this.#send(['XREADGROUP', 'GROUP', group, this.#worker, 'COUNT', count, 'STREAMS', orders, from])
  }

  /** Takes over entries that a worker took this long ago without settling them. */
  async claimIdle(idleMs: number, count: number): Promise<StreamEntry[]> {
    const { orders } = this.#keys
    const pending = ['XPENDING', orders, group, 'IDLE', idleMs, '-', '+', count] as const
    const waiting = (await this.#send(pending)) as [string, string, number, number][]
    if (waiting.length === 0) return []
    const ids = waiting.map(([id]) => id)
    return entriesOf(await this.#send(['XCLAIM', orders, group, this.#worker, idleMs, ...ids]))
  }

  /** The oldest entry taken but not settled. All before it are stored or dead letters. */
  async oldestPending(): Promise<string | undefined> {
    const [oldest] = (await this.#send(['XPENDING', this.#keys.orders, group, '-', '+', 1])) as [string][]
    return oldest?.[0]
  }

  /** The entries up to an id that were taken but not settled, oldest first; at most `limit`. */
  async pendingUpTo(id: string, limit: number): Promise<string[]> {
    const reply = (await this.#send(['XPENDING', this.#keys.orders, group, '-', id, limit])) as [string][]
    return reply.map(([pending]) => pending)
  }

  /** True if no worker holds an entry and no order is unpaid. */
  async isIdle(): Promise<boolean> {
    const { orders, unpaid } = this.#keys
    const [[pending], waiting] = (await Promise.all([
      this.#send(['XPENDING', orders, group]),
      this.#send(['ZCARD', unpaid]),
    ])) as [[number], number]
    return pending === 0 && waiting === 0
  }

  async settle(ids: readonly string[]): Promise<void> {
    if (ids.length > 0) await this.#send(['XACK', this.#keys.orders, group, ...ids])
  }

  /** Counts a fault of the entry itself, over all workers; returns its total. */
  async noteFault(id: string): Promise<number> {
    return Number(await this.#redis.send(['HINCRBY', this.#keys.faults, id, 1]))
  }

  /** Moves an entry to the dead letters with the reason; false if they are full, and it stays pending. */
  async bury(entry: StreamEntry, reason: string, cause: string, maxDead: number): Promise<'done' | 'gone' | 'full'> {
    const { orders, dead, faults } = this.#keys
    const fields = ['entry', entry.id, 'reason', reason, ...(cause === '' ? [] : ['cause', cause]), ...entry.fields]
    const args = [group, entry.id, maxDead, ...fields]
    return (await this.#redis.run(buryScript, [orders, dead, faults], args)) as 'done' | 'gone' | 'full'
  }

  /** Deletes what every group has settled and is older than `keepMs`. */
  async trim(keepMs: number): Promise<number> {
    return Number(await this.#redis.run(trimScript, [this.#keys.orders], [keepMs]))
  }

  #send(args: readonly [string, ...(string | number)[]]): Promise<unknown> {
    return this.#redis.send(args, { key: this.#keys.orders })
  }
}
