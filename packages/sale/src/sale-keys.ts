/**
 * The keys of one voucher. The hash has the name that people look for, `seckill:<voucherId>`; its companions carry that
 * whole name as their hash tag, so that all hash to one slot and one script may touch them on a cluster.
 */
export interface SaleKeys {
  /** Hash: begin, end (Unix seconds, inclusive), stock, total, perUser, restocks. */
  readonly voucher: string
  /** Set of the users who hold an order. */
  readonly users: string
  /** Hash user → orders held; used where a user may buy more than one. */
  readonly counts: string
  /** Stream of what happened to orders, for the workers. */
  readonly orders: string
  /** Hash order id → state and owner. */
  readonly states: string
  /** Sorted set of unpaid orders by deadline. */
  readonly unpaid: string
  /** Stream of entries that no worker could store, with the reason. */
  readonly dead: string
  /** Channel: `placed`, `restock:<n>`. */
  readonly channel: string
}

/** All vouchers that were ever opened, for workers that serve them all. */
export const registryKey = 'seckill:vouchers'

export function saleKeys(voucherId: string): SaleKeys {
  const voucher = `seckill:${voucherId}`
  const companion = (name: string) => `{${voucher}}:${name}`
  return {
    voucher,
    users: companion('users'),
    counts: companion('counts'),
    orders: companion('orders'),
    states: companion('states'),
    unpaid: companion('unpaid'),
    dead: companion('dead'),
    channel: companion('events'),
  }
}
