import { loadScript, type Redis, type RedisReply, withPublishCommand } from '@firebreak/redis'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import { freeHash, setHoldCount } from '../lock/reentrant-protocol.ts'
import { loadTimedScript } from '../time/now-script.ts'
import { loadTokenScript, tokenArgs } from '../token/token-script.ts'
import { type ReadWriteKeys, readWriteKeys } from './read-write-keys.ts'

const acquireScript = /* @__PURE__ */ loadTimedScript(new URL('./write-acquire.lua', import.meta.url), loadTokenScript)
const waitScript = /* @__PURE__ */ loadScript(new URL('./write-wait.lua', import.meta.url))

/** The write side: one owner and no readers. */
export class WriteProtocol implements LockProtocol {
  readonly kind = 'write'
  readonly leaseShape = 'hash'
  readonly wakes = 'one'
  readonly isShared = false
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly tokenKeys: readonly [string, string]
  readonly channel: string
  readonly #redis: Redis
  readonly #keys: ReadWriteKeys
  readonly #waiterTtlMs: number

  constructor(redis: Redis, name: string, waiterTtlMs: number) {
    this.#redis = redis
    this.#keys = readWriteKeys(name)
    this.#waiterTtlMs = waiterTtlMs
    this.name = name
    this.id = `write ${name}`
    this.leaseKey = this.#keys.writer
    this.tokenKeys = [this.#keys.token, this.#keys.epoch]
    this.channel = this.#keys.channel
  }

  acquire(call: AcquireCall): Promise<RedisReply> {
    const { writer, readers, waiting, token, epoch } = this.#keys
    const keys = [writer, readers, waiting, token, epoch]
    const args = [call.owner, call.leaseMs, call.willWait ? this.#waiterTtlMs : 0, ...tokenArgs(call)]
    return this.#redis.run(acquireScript, keys, args)
  }

  setCount(owner: string, count: number, leaseMs: number): Promise<boolean> {
    return setHoldCount(this.#redis, this.leaseKey, owner, count, leaseMs)
  }

  release(owner: string): Promise<RedisReply> {
    return freeHash(this.#redis, this.leaseKey, this.channel, owner)
  }

  async abandon(owner: string): Promise<void> {
    await this.#wait(owner, 0)
  }

  async keepWaiting(owners: readonly string[]): Promise<string[]> {
    if (owners.length > 0) await this.#wait(owners[0]!, this.#waiterTtlMs)
    return []
  }

  async #wait(owner: string, ms: number): Promise<void> {
    const { readers, waiting, channel } = this.#keys
    const args = [owner, ms, channel]
    await withPublishCommand(this.#redis, (command) =>
      this.#redis.run(waitScript, [readers, waiting], [...args, command]),
    )
  }
}
