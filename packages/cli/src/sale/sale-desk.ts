import type { SaleDesk } from '@firebreak/hub'
import { type OwnRedis, openRedis } from '@firebreak/redis'
import { DeadLetters, SaleBoard } from '@firebreak/sale'

/** How a sale's Redis came to be known. */
export interface SaleDeskOptions {
  /**
   * Nobody named this Redis for a sale: it may hold one. Then it is shown without vouchers while it does not answer,
   * unless it had some before.
   * @default false
   */
  readonly isAssumed?: boolean
}

/** A sale's Redis, or cluster by the URLs of nodes, as used by the hub's API; connects on first use. */
export function openSaleDesk(
  url: string | readonly string[],
  { isAssumed = false }: SaleDeskOptions = {},
): SaleDesk & { close(): void } {
  let own: Promise<OwnRedis> | undefined
  let hadVouchers = false
  const redis = async () => {
    own ??= openRedis(url)
    return (await own).redis
  }
  const vouchers = async () => {
    const found = await new SaleBoard(await redis()).vouchers()
    hadVouchers ||= found.length > 0
    return found
  }
  return {
    vouchers: async () => {
      try {
        return await vouchers()
      } catch (error) {
        if (isAssumed && !hadVouchers) return []
        throw error
      }
    },
    orders: async (voucherId, limit) => new SaleBoard(await redis()).orders(voucherId, limit),
    letters: async (voucherId, limit) => new DeadLetters(await redis()).list(voucherId, { limit }),
    settle: async (voucherId, ids, action) => new DeadLetters(await redis())[action](voucherId, ids),
    close: () => void own?.then(({ close }) => close()),
  }
}
