import type { SaleDesk } from '@firebreak/hub'
import { type OwnRedis, openRedis } from '@firebreak/redis'
import { DeadLetters, SaleBoard } from '@firebreak/sale'

/** A sale's Redis as used by the hub's API; connects on first use. */
export function openSaleDesk(url: string): SaleDesk & { close(): void } {
  let own: Promise<OwnRedis> | undefined
  const redis = async () => {
    own ??= openRedis(url)
    return (await own).redis
  }
  return {
    vouchers: async () => new SaleBoard(await redis()).vouchers(),
    orders: async (voucherId, limit) => new SaleBoard(await redis()).orders(voucherId, limit),
    letters: async (voucherId, limit) => new DeadLetters(await redis()).list(voucherId, { limit }),
    settle: async (voucherId, ids, action) => new DeadLetters(await redis())[action](voucherId, ids),
    close: () => void own?.then(({ close }) => close()),
  }
}
