import { loadScript, type Redis, type RedisReply } from '@firebreak/redis'
import { loadTokenScript } from '../token/token-script.ts'
import { type LockKeys, lockKeys } from './lock-keys.ts'
import type { AcquireCall, Attempt, LockProtocol, Release, ReleaseCall } from './protocol.ts'

const acquireScript = /* @__PURE__ */ loadTokenScript(new URL('./acquire.lua', import.meta.url))
const releaseScript = /* @__PURE__ */ loadTokenScript(new URL('./release.lua', import.meta.url))
const forceScript = /* @__PURE__ */ loadScript(new URL('./force-release.lua', import.meta.url))

/** The command that reaches the subscribers of a channel: sharded on a cluster, as the subscriptions are. */
export function publishCommand(redis: Redis): 'PUBLISH' | 'SPUBLISH' {
  return redis.topology === 'cluster' ? 'SPUBLISH' : 'PUBLISH'
}

/** Reads the reply of an acquiring script: a token, or -1 - ms to wait (0: no end known), or nil for lost. */
export function readAttempt(reply: RedisReply): Attempt {
  if (reply === null) return 'lost'
  const value = Number(reply)
  if (value > 0) return { token: value }
  return { waitMs: value === 0 ? Number.POSITIVE_INFINITY : -1 - value }
}

/** Reads the reply of a releasing script: 0 not held, 1 released, otherwise the next owner's token. */
export function readRelease(reply: RedisReply): Release {
  const value = Number(reply)
  if (value > 1) return { handed: value }
  return value === 1 ? 'released' : 'not-held'
}

/** The reentrant lock, in Java Redisson's keys and messages. */
export class ReentrantProtocol implements LockProtocol {
  readonly kind = 'lock'
  readonly leaseShape = 'hash'
  readonly wakes = 'one'
  readonly isShared = false
  readonly canHandOver = true
  readonly name: string
  readonly leaseKey: string
  readonly channel: string
  readonly #redis: Redis
  readonly #keys: LockKeys

  constructor(redis: Redis, name: string) {
    this.#redis = redis
    this.#keys = lockKeys(name)
    this.name = name
    this.leaseKey = this.#keys.lock
    this.channel = this.#keys.channel
  }

  async acquire(call: AcquireCall): Promise<Attempt> {
    const { lock, token } = this.#keys
    const args = [call.owner, call.count, call.leaseMs, call.seenToken]
    return readAttempt(await this.#redis.run(acquireScript, [lock, token], args))
  }

  async release(call: ReleaseCall): Promise<Release> {
    const { lock, channel, token } = this.#keys
    const args = [call.owner, call.count, call.token, publishCommand(this.#redis)]
    const { next } = call
    if (next !== undefined) args.push(next.owner, next.leaseMs, next.seenToken)
    return readRelease(await this.#redis.run(releaseScript, [lock, channel, token], args))
  }

  async forceRelease(): Promise<boolean> {
    const { lock, channel } = this.#keys
    return (await this.#redis.run(forceScript, [lock, channel], [publishCommand(this.#redis)])) === 1
  }
}
