import { InvalidOptionError } from '@firebreak/core'
import { loadScript, publishCommand, type Redis, type RedisClient, toRedis } from '@firebreak/redis'
import { entriesOf, fieldsOf, isEntryId, type StreamEntry } from '../orders/stream-entry.ts'
import { registryKey, saleKeys } from '../sale-keys.ts'

const replayScript = loadScript(new URL('./replay.lua', import.meta.url))

/** An entry that could not be stored, and why. */
export interface DeadLetter {
  /** Its id among the dead letters of its voucher. */
  readonly id: string
  readonly voucherId: string
  /** When it was given up, milliseconds since 1970. */
  readonly deadAt: number
  readonly reason: string
  /** The store's own message, if it failed. */
  readonly cause: string | undefined
  /** The id it had in the orders stream. */
  readonly entryId: string
  /** Its fields: kind, order, user, number, at. */
  readonly fields: Readonly<Record<string, string>>
}

/** Which dead letters to list. */
export interface ListOptions {
  /** Maximum number to return. @default 100 */
  readonly limit?: number
  /** Only letters after this id. @default from the first */
  readonly after?: string
}

const ownFields: ReadonlySet<string> = new Set(['entry', 'reason', 'cause'])

/** The dead letters of all vouchers, kept until they are replayed or discarded. */
export class DeadLetters {
  readonly #redis: Redis

  constructor(redis: RedisClient) {
    this.#redis = toRedis(redis)
  }

  /** Their number by voucher; vouchers without any are left out. */
  async count(): Promise<Map<string, number>> {
    const vouchers = ((await this.#redis.send(['SMEMBERS', registryKey])) as string[]).sort()
    const counts = await Promise.all(vouchers.map((id) => this.#redis.send(['XLEN', saleKeys(id).dead])))
    return new Map(vouchers.map((id, index) => [id, Number(counts[index])] as const).filter(([, count]) => count > 0))
  }

  /** The letters of a voucher, oldest first. */
  async list(voucherId: string, { limit = 100, after }: ListOptions = {}): Promise<DeadLetter[]> {
    if (!Number.isSafeInteger(limit) || limit < 1)
      throw new InvalidOptionError('limit', limit, 'a whole number, 1 or more')
    if (after !== undefined) checkId('after', after)
    const from = after === undefined ? '-' : `(${after}`
    const reply = await this.#redis.send(['XRANGE', saleKeys(voucherId).dead, from, '+', 'COUNT', limit])
    return entriesOf(reply).map((entry) => letterOf(voucherId, entry))
  }

  /**
   * Returns letters to the workers, in order, at the end of the stream; returns their number. One that fails again
   * becomes a dead letter again.
   */
  replay(voucherId: string, ids: readonly string[]): Promise<number> {
    return this.#each(voucherId, ids, 'replay')
  }

  /** Deletes letters permanently; returns their number. */
  discard(voucherId: string, ids: readonly string[]): Promise<number> {
    return this.#each(voucherId, ids, 'discard')
  }

  async #each(voucherId: string, ids: readonly string[], action: 'replay' | 'discard'): Promise<number> {
    const { dead, orders, channel } = saleKeys(voucherId)
    for (const id of ids) checkId('id', id)
    let done = 0
    for (const id of ids) {
      const args = [action, id, channel, await publishCommand(this.#redis)]
      done += Number(await this.#redis.run(replayScript, [dead, orders], args))
    }
    return done
  }
}

/** Redis accepts many forms of stream positions; a letter is identified by its whole id. */
function checkId(option: string, id: string): void {
  if (!isEntryId(id)) throw new InvalidOptionError(option, id, 'the id of a dead letter, such as 1770000000000-0')
}

function letterOf(voucherId: string, entry: StreamEntry): DeadLetter {
  const all = fieldsOf(entry)
  const fields = Object.fromEntries([...all].filter(([name]) => !ownFields.has(name)))
  return {
    id: entry.id,
    voucherId,
    deadAt: Number(entry.id.split('-')[0]),
    reason: all.get('reason') ?? '',
    cause: all.get('cause'),
    entryId: all.get('entry') ?? '',
    fields,
  }
}
