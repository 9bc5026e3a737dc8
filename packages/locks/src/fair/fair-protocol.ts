import {
  defineScript,
  loadScript,
  type Redis,
  type RedisReply,
  type RedisScript,
  withPublishCommand,
} from '@firebreak/redis'
import { besideName, lockKeys } from '../lock/lock-keys.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import { setHoldCount } from '../lock/reentrant-protocol.ts'
import { loadTokenScript, tokenArgs } from '../token/token-script.ts'

/*
 * First come, first served, across processes.
 *
 * Waiters are in a list in Redis. A release does not free the lock but reserves it for the first of them (direct
 * hand-off: nobody can come in between) and tells that waiter's process, on its own channel, whose turn it is; the
 * waiter then claims the lock, which gives it its token and its whole lease, counted by its own clock.
 *
 * A waiter may be dead. Each process reports to Redis every third of `waiterTtlMs` that its waiters are still there,
 * and any that was silent for longer (by Redis' clock, so that no other clock matters) is skipped. If one dies with the
 * lock reserved for it, the reservation expires after the same time. The same heartbeat passes on a lock whose holder
 * died.
 *
 * Holders are in the same hash as those of the reentrant lock, so that a fair and a plain lock of the same name exclude
 * each other; only fair ones queue.
 */

const queueFunctions = /* @__PURE__ */ loadScript(new URL('./fair.lua', import.meta.url))

function load(file: string, reader: (url: URL) => RedisScript): RedisScript {
  const script = reader(new URL(file, import.meta.url))
  return defineScript(`fair-${script.name}`, queueFunctions.source + script.source)
}

const acquireScript = /* @__PURE__ */ load('./acquire.lua', loadTokenScript)
const releaseScript = /* @__PURE__ */ load('./release.lua', loadScript)
const abandonScript = /* @__PURE__ */ load('./abandon.lua', loadScript)
const keepWaitingScript = /* @__PURE__ */ load('./keep-waiting.lua', loadScript)

/** The fair lock. */
export class FairProtocol implements LockProtocol {
  readonly kind = 'fair'
  readonly leaseShape = 'hash'
  readonly wakes = 'owner'
  readonly isShared = false
  readonly name: string
  readonly id: string
  readonly leaseKey: string
  readonly tokenKeys: readonly [string, string]
  readonly channel: string
  readonly #redis: Redis
  readonly #keys: readonly string[]
  readonly #waiterTtlMs: number
  readonly #turns: string
  readonly #releases: string

  constructor(redis: Redis, name: string, options: { readonly instanceId: string; readonly waiterTtlMs: number }) {
    const { lock, token, epoch, channel } = lockKeys(name)
    const queue = besideName('firebreak_lock_queue', name)
    const alive = besideName('firebreak_lock_alive', name)
    this.#redis = redis
    this.name = name
    this.id = `fair ${name}`
    this.leaseKey = lock
    this.tokenKeys = [token, epoch]
    this.#turns = `${besideName('firebreak_lock_turn', name)}:`
    this.channel = this.#turns + options.instanceId
    this.#releases = channel
    this.#keys = [lock, queue, alive, token, epoch]
    this.#waiterTtlMs = options.waiterTtlMs
  }

  acquire(call: AcquireCall): Promise<RedisReply> {
    return this.#run(acquireScript, [call.owner, call.leaseMs, call.willWait ? 1 : 0, ...tokenArgs(call)])
  }

  setCount(owner: string, count: number, leaseMs: number): Promise<boolean> {
    return setHoldCount(this.#redis, this.leaseKey, owner, count, leaseMs)
  }

  release(owner: string): Promise<RedisReply> {
    return this.#run(releaseScript, [owner])
  }

  async forceRelease(): Promise<boolean> {
    return (await this.#run(releaseScript, [])) === 1
  }

  async abandon(owner: string): Promise<void> {
    await this.#run(abandonScript, [owner])
  }

  async keepWaiting(owners: readonly string[]): Promise<string[]> {
    return (await this.#run(keepWaitingScript, owners)) as string[]
  }

  #run(script: RedisScript, args: readonly (string | number)[]): Promise<RedisReply> {
    return withPublishCommand(this.#redis, (command) =>
      this.#redis.run(script, this.#keys, [this.#waiterTtlMs, command, this.#turns, this.#releases, ...args]),
    )
  }
}
