import { loadScript, type Redis } from '@firebreak/redis'
import type { LockProtocol } from '../lock/protocol.ts'

/** Renews the leases of many holders at once. */
export const renewScript = /* @__PURE__ */ loadScript(new URL('./renew.lua', import.meta.url))

/** Gives one owner a new lease from now on; false where the lock is not its own any more. */
export async function renewOne(
  redis: Redis,
  { leaseKey, leaseShape }: LockProtocol,
  { owner, leaseMs }: { readonly owner: string; readonly leaseMs: number },
): Promise<boolean> {
  const [isOurs] = (await redis.run(renewScript, [leaseKey], [leaseMs, `${leaseShape}:${owner}`])) as number[]
  return isOurs === 1
}
