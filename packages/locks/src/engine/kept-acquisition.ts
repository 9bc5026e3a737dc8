import type { Redis, RedisReply } from '@firebreak/redis'
import { LockNotReplicatedError } from '../errors.ts'
import { renewOne } from '../lease/renew-one.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import type { ResolvedLocksOptions } from '../options.ts'

/** How often a lock is taken anew that was gone when its copies were counted. */
const maxTries = 3

/**
 * An attempt that only counts once the given number of replicas, or the append-only file, have it; otherwise it is
 * undone.
 *
 * The count is only worth something of the server that has the lock. A client that follows a promotion sends what it got
 * no answer for to the new master, which has nothing to wait for and says so at once. So lock and token are looked for
 * behind the count: where they are gone, the lock is taken anew. (The lock alone may be there from an earlier try, whose
 * answer was lost.)
 */
export async function acquireKept(
  redis: Redis,
  protocol: LockProtocol,
  call: AcquireCall,
  { replicas, fsync }: Pick<ResolvedLocksOptions, 'replicas' | 'fsync'>,
): Promise<RedisReply> {
  const count = replicas?.count ?? 0
  const key = { key: protocol.leaseKey }
  const isThere = async (token: number): Promise<boolean> => {
    const looking = redis.send(['MGET', ...protocol.tokenKeys])
    const [isHeld, latest] = await Promise.all([renewOne(redis, protocol, call), looking])
    // Where the counter has ended, the next token comes behind the epoch.
    const [counter, epochEnd] = latest as (string | null)[]
    return isHeld && Number(counter ?? epochEnd ?? 0) >= token
  }
  const isKept = async (token: number): Promise<boolean> => {
    if (fsync !== undefined) {
      const timeoutMs = Math.max(fsync.timeoutMs, replicas?.timeoutMs ?? 0)
      const counting = redis.send(['WAITAOF', 1, count, timeoutMs], key)
      const [counted, isStillThere] = await Promise.all([counting, isThere(token)])
      const [written, copies] = counted as number[]
      if (written! >= 1 && copies! >= count) return isStillThere
      throw new LockNotReplicatedError(protocol.name, written! < 1 ? 0 : copies!, Math.max(1, count))
    }
    const counting = redis.send(['WAIT', count, replicas!.timeoutMs], key)
    const [acknowledged, isStillThere] = await Promise.all([counting, isThere(token)])
    if (Number(acknowledged) >= count) return isStillThere
    throw new LockNotReplicatedError(protocol.name, Number(acknowledged), count)
  }
  const undo = async (error: unknown): Promise<never> => {
    await protocol.release(call.owner).catch(() => {})
    throw error
  }
  for (let tries = 1; tries <= maxTries; tries++) {
    const reply = await protocol.acquire(call)
    if (Number(reply) <= 0 || (await isKept(Number(reply)).catch(undo))) return reply
  }
  return undo(new LockNotReplicatedError(protocol.name, 0, Math.max(1, count)))
}
