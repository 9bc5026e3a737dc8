import { loadScript, type Redis } from '@firebreak/redis'
import { registryKey, saleKeys } from '../sale-keys.ts'

const removeScript = loadScript(new URL('./remove.lua', import.meta.url))

/**
 * What became of a wish to remove a voucher: `open`, `unpaid`, `unstored` and `dead` say why it is kept (it is not over for
 * long enough, an order waits for its payment, an event for a worker, a dead letter for somebody).
 */
export type RemoveResult = 'removed' | 'unknown' | 'open' | 'unpaid' | 'unstored' | 'dead'

/** Removes what a voucher left in Redis, where it has been over for so long and nothing of it is under way. */
export async function removeVoucher(redis: Redis, voucherId: string, keptMs: number): Promise<RemoveResult> {
  const { voucher, orders, unpaid, dead, users, holders, states, restocked, faults } = saleKeys(voucherId)
  const keys = [voucher, orders, unpaid, dead, users, holders, states, restocked, faults]
  const result = (await redis.run(removeScript, keys, [keptMs])) as RemoveResult
  if (result !== 'removed' && result !== 'unknown') return result
  // The names lie in a slot of their own. Whoever opens it again meanwhile adds the name before the hash, and once more
  // after it: it is there in the end, whichever comes last.
  await redis.send(['SREM', registryKey, voucherId])
  if (Number(await redis.send(['EXISTS', voucher])) === 1) await redis.send(['SADD', registryKey, voucherId])
  return result
}
