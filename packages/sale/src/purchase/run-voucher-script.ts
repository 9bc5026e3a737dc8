import type { Redis, RedisArgument, RedisReply, RedisScript } from '@firebreak/redis'
import { voucherWrong } from '../voucher.ts'

/** Runs one of the scripts that change a voucher and its orders. If it throws, nothing was changed. */
export async function runVoucherScript(
  redis: Redis,
  voucherId: string,
  script: RedisScript,
  keys: readonly string[],
  args: readonly RedisArgument[],
): Promise<RedisReply> {
  try {
    return await redis.run(script, keys, args)
  } catch (error) {
    if (error instanceof Error && error.message.includes('WRONGTYPE'))
      throw voucherWrong(voucherId, 'one of its keys', 'of another type', 'as the sale made it')
    throw error
  }
}
