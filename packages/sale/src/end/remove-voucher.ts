import { loadScript, type Redis } from '@firebreak/redis'
import { registryKey, saleKeys } from '../sale-keys.ts'

const removeScript = loadScript(new URL('./remove.lua', import.meta.url))

/**
 * The result of removing a voucher: `open`, `unpaid`, `unstored` and `dead` say why it is kept (it has not been over
 * for long enough, an order is unpaid, an event waits for a worker, there are dead letters).
 */
export type RemoveResult = 'removed' | 'unknown' | 'open' | 'unpaid' | 'unstored' | 'dead'

/** Removes what a voucher left in Redis, if it has been over for long enough and nothing is in progress. */
export async function removeVoucher(redis: Redis, voucherId: string, keptMs: number): Promise<RemoveResult> {
  const { voucher, orders, unpaid, dead, users, holders, states, restocked, faults } = saleKeys(voucherId)
  const keys = [voucher, orders, unpaid, dead, users, holders, states, restocked, faults]
  const result = (await redis.run(removeScript, keys, [keptMs])) as RemoveResult
  if (result !== 'removed' && result !== 'unknown') return result
  // The set of names is in another slot. Reopening the voucher meanwhile adds the name before the hash, and again after
  // it: so it is there in the end, whichever comes last.
  await redis.send(['SREM', registryKey, voucherId])
  if (Number(await redis.send(['EXISTS', voucher])) === 1) await redis.send(['SADD', registryKey, voucherId])
  return result
}
