import type { Redis, RedisReply } from '@firebreak/redis'
import { LockNotReplicatedError } from '../errors.ts'
import type { AcquireCall, LockProtocol } from '../lock/protocol.ts'
import type { ResolvedLocksOptions } from '../options.ts'

/**
 * An attempt that only counts once the given number of replicas, or the append-only file, have it; otherwise it is
 * undone.
 */
export async function acquireKept(
  redis: Redis,
  protocol: LockProtocol,
  call: AcquireCall,
  { replicas, fsync }: Pick<ResolvedLocksOptions, 'replicas' | 'fsync'>,
): Promise<RedisReply> {
  const reply = await protocol.acquire(call)
  if (Number(reply) <= 0) return reply
  const count = replicas?.count ?? 0
  const key = { key: protocol.leaseKey }
  try {
    if (fsync !== undefined) {
      const timeoutMs = Math.max(fsync.timeoutMs, replicas?.timeoutMs ?? 0)
      const [written, copies] = (await redis.send(['WAITAOF', 1, count, timeoutMs], key)) as number[]
      if (written! >= 1 && copies! >= count) return reply
      throw new LockNotReplicatedError(protocol.name, written! < 1 ? 0 : copies!, Math.max(1, count))
    }
    const acknowledged = Number(await redis.send(['WAIT', count, replicas!.timeoutMs], key))
    if (acknowledged >= count) return reply
    throw new LockNotReplicatedError(protocol.name, acknowledged, count)
  } catch (error) {
    await protocol.release(call.owner).catch(() => {})
    throw error
  }
}
