import { loadScript, type Redis, type RedisReply } from '@firebreak/redis'
import { loadTokenScript } from '../token/token-script.ts'
import { lockKeys } from './lock-keys.ts'
import type { AcquireCall, Attempt, LockProtocol } from './protocol.ts'

const acquireScript = /* @__PURE__ */ loadTokenScript(new URL('./acquire.lua', import.meta.url))
const setCountScript = /* @__PURE__ */ loadScript(new URL('./set-count.lua', import.meta.url))
const releaseScript = /* @__PURE__ */ loadScript(new URL('./release.lua', import.meta.url))
const handOverScript = /* @__PURE__ */ loadTokenScript(new URL('./hand-over.lua', import.meta.url))
const forceScript = /* @__PURE__ */ loadScript(new URL('./force-release.lua', import.meta.url))

/** The command that reaches the subscribers of a channel: sharded on a cluster, as the subscriptions are. */
export function publishCommand(redis: Redis): 'PUBLISH' | 'SPUBLISH' {
  return redis.topology === 'cluster' ? 'SPUBLISH' : 'PUBLISH'
}

/** Reads the reply of an acquiring script: a token, or -1 - ms to wait (0: no end known). */
export function readAttempt(reply: RedisReply): Attempt {
  const value = Number(reply)
  if (value > 0) return { token: value }
  return { waitMs: value === 0 ? Number.POSITIVE_INFINITY : -1 - value }
}

/** Writes the hold count of an owner into the hash of holders; false when the lock is not the owner's any more. */
export async function setHoldCount(
  redis: Redis,
  key: string,
  owner: string,
  count: number,
  leaseMs: number,
): Promise<boolean> {
  return (await redis.run(setCountScript, [key], [owner, count, leaseMs])) === 1
}

/** Frees a lock that is a hash of its holder and tells the channel; false when it was not the owner's any more. */
export async function freeHash(redis: Redis, key: string, channel: string, owner: string): Promise<boolean> {
  return (await redis.run(releaseScript, [key, channel], [owner, publishCommand(redis)])) === 1
}

/** The reentrant lock, in Java Redisson's keys and messages. */
export class ReentrantProtocol implements LockProtocol {
  readonly kind = 'lock'
  readonly leaseShape = 'hash'
  readonly wakes = 'one'
  readonly isShared = false
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly channel: string
  readonly #redis: Redis
  readonly #acquireKeys: readonly string[]

  constructor(redis: Redis, name: string) {
    const keys = lockKeys(name)
    this.#redis = redis
    this.name = name
    this.id = `lock ${name}`
    this.leaseKey = keys.lock
    this.channel = keys.channel
    this.#acquireKeys = [keys.lock, keys.token, keys.epoch]
  }

  async acquire({ owner, leaseMs, tokenFloor }: AcquireCall): Promise<Attempt> {
    const args = tokenFloor === 0 ? [owner, leaseMs] : [owner, leaseMs, tokenFloor]
    return readAttempt(await this.#redis.run(acquireScript, this.#acquireKeys, args))
  }

  setCount(owner: string, count: number, leaseMs: number): Promise<boolean> {
    return setHoldCount(this.#redis, this.leaseKey, owner, count, leaseMs)
  }

  release(owner: string): Promise<boolean> {
    return freeHash(this.#redis, this.leaseKey, this.channel, owner)
  }

  async handOver(owner: string, next: AcquireCall): Promise<number> {
    const args = [owner, next.owner, next.leaseMs, next.tokenFloor]
    return Number(await this.#redis.run(handOverScript, this.#acquireKeys, args))
  }

  async forceRelease(): Promise<boolean> {
    const keys = [this.leaseKey, this.channel]
    return (await this.#redis.run(forceScript, keys, [publishCommand(this.#redis)])) === 1
  }
}
