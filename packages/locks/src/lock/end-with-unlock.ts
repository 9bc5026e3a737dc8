import { isTransient } from '../engine/transient.ts'
import { LockLostError } from '../errors.ts'

/**
 * Runs a guarded function and unlocks, however it ends. Rethrows what it threw. If it succeeded but the lock had been
 * lost, another owner may have been inside meanwhile: that is reported, with the result, unless `onLost` is `resolve`.
 */
export async function endWithUnlock<T>(
  run: () => Promise<T>,
  unlock: () => Promise<boolean>,
  lossOf: () => LockLostError | undefined,
  onLost: 'reject' | 'resolve' = 'reject',
): Promise<T> {
  let result: T
  try {
    result = await run()
  } catch (error) {
    // The function's own error is what the caller must see.
    await unlock().catch(() => false)
    throw error
  }
  const wasOurs = await unlock().catch((error) => {
    // An unreachable Redis is no reason to hide the function's result: the lock was ours until its end.
    if (!isTransient(error)) throw error
    return true
  })
  const loss = lossOf()
  if (wasOurs || onLost === 'resolve' || loss === undefined) return result
  throw new LockLostError(loss.lock, loss.token, loss.reason, { result })
}
