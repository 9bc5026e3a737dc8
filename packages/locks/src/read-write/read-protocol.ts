import { type Redis, type RedisReply, withPublishCommand } from '@firebreak/redis'
import { keepMember } from '../lease/keep-member.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import { loadTimedScript } from '../time/now-script.ts'
import { loadTokenScript, tokenArgs } from '../token/token-script.ts'
import { type ReadWriteKeys, readWriteKeys } from './read-write-keys.ts'

const acquireScript = /* @__PURE__ */ loadTimedScript(new URL('./read-acquire.lua', import.meta.url), loadTokenScript)
const releaseScript = /* @__PURE__ */ loadTimedScript(new URL('./read-release.lua', import.meta.url))

/** The read side: many owners at once, each with its own lease. */
export class ReadProtocol implements LockProtocol {
  readonly kind = 'read'
  readonly leaseShape = 'set'
  readonly wakes = 'one'
  readonly isShared = true
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly tokenKeys: readonly [string, string]
  readonly channel: string
  readonly #redis: Redis
  readonly #keys: ReadWriteKeys

  constructor(redis: Redis, name: string) {
    this.#redis = redis
    this.#keys = readWriteKeys(name)
    this.name = name
    this.id = `read ${name}`
    this.leaseKey = this.#keys.readers
    this.tokenKeys = [this.#keys.token, this.#keys.epoch]
    this.channel = this.#keys.channel
  }

  acquire(call: AcquireCall): Promise<RedisReply> {
    const { writer, readers, waiting, token, epoch } = this.#keys
    const keys = [writer, readers, waiting, token, epoch]
    return this.#redis.run(acquireScript, keys, [call.owner, call.leaseMs, ...tokenArgs(call)])
  }

  setCount(owner: string, _count: number, leaseMs: number): Promise<boolean> {
    return keepMember(this.#redis, this.leaseKey, owner, leaseMs)
  }

  release(owner: string): Promise<RedisReply> {
    const args = [owner, this.channel]
    return withPublishCommand(this.#redis, (command) =>
      this.#redis.run(releaseScript, [this.leaseKey], [...args, command]),
    )
  }
}
