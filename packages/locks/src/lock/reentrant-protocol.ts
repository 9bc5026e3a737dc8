import { loadScript, type PublishCommand, type Redis, type RedisReply, withPublishCommand } from '@firebreak/redis'
import { defaultTokenMemoryMs, loadTokenEnding, tokenArgs } from '../token/token-script.ts'
import { lockKeys } from './lock-keys.ts'
import type { AcquireCall, LockProtocol } from './protocol.ts'

const acquireScript = /* @__PURE__ */ loadTokenEnding(new URL('./acquire.lua', import.meta.url))
const setCountScript = /* @__PURE__ */ loadScript(new URL('./set-count.lua', import.meta.url))
const releaseScript = /* @__PURE__ */ loadScript(new URL('./release.lua', import.meta.url))
const handOverScript = /* @__PURE__ */ loadTokenEnding(new URL('./hand-over.lua', import.meta.url))
const forceScript = /* @__PURE__ */ loadScript(new URL('./force-release.lua', import.meta.url))

/** Writes an owner's hold count into the hash of holders; false if the lock is no longer the owner's. */
export async function setHoldCount(
  redis: Redis,
  key: string,
  owner: string,
  count: number,
  leaseMs: number,
): Promise<boolean> {
  return (await redis.run(setCountScript, [key], [owner, count, leaseMs])) === 1
}

/** Frees a lock that is a hash of its holder and notifies the channel: 1, or 0 if it was no longer the owner's. */
export function freeHash(redis: Redis, key: string, channel: string, owner: string): Promise<RedisReply> {
  if (redis.topology !== 'cluster') return redis.run(releaseScript, [key], [owner, channel])
  return withPublishCommand(redis, (command) => redis.run(releaseScript, [key], [owner, channel, command]))
}

/** The reentrant lock, with the keys and messages of Java's Redisson. */
export class ReentrantProtocol implements LockProtocol {
  readonly kind = 'lock'
  readonly leaseShape = 'hash'
  readonly wakes = 'one'
  readonly isShared = false
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly tokenKeys: readonly [string, string]
  readonly channel: string
  readonly #redis: Redis
  readonly #acquireKeys: readonly string[]

  constructor(redis: Redis, name: string) {
    const keys = lockKeys(name)
    this.#redis = redis
    this.name = name
    this.id = `lock ${name}`
    this.leaseKey = keys.lock
    this.tokenKeys = [keys.token, keys.epoch]
    this.channel = keys.channel
    this.#acquireKeys = [keys.lock, keys.token, keys.epoch]
  }

  acquire(call: AcquireCall): Promise<RedisReply> {
    const { owner, leaseMs, tokenFloor, isFirst, tokenMemoryMs } = call
    const isUsual = tokenFloor === 0 && !isFirst && tokenMemoryMs === defaultTokenMemoryMs
    const args = isUsual ? [owner, leaseMs] : [owner, leaseMs, ...tokenArgs(call)]
    return this.#redis.run(acquireScript, this.#acquireKeys, args)
  }

  setCount(owner: string, count: number, leaseMs: number): Promise<boolean> {
    return setHoldCount(this.#redis, this.leaseKey, owner, count, leaseMs)
  }

  release(owner: string): Promise<RedisReply> {
    return freeHash(this.#redis, this.leaseKey, this.channel, owner)
  }

  async handOver(owner: string, next: AcquireCall): Promise<number> {
    const args = [owner, next.owner, next.leaseMs, ...tokenArgs(next)]
    return Number(await this.#redis.run(handOverScript, this.#acquireKeys, args))
  }

  async forceRelease(): Promise<boolean> {
    const force = (command: PublishCommand) => this.#redis.run(forceScript, [this.leaseKey], [this.channel, command])
    return (await withPublishCommand(this.#redis, force)) === 1
  }
}
