/**
 * The keys of one voucher. The hash has the well-known name `seckill:<voucherId>`; its companions carry that whole name
 * as their hash tag, so that all are in one slot and one script may touch them on a cluster.
 */
export interface SaleKeys {
  /** Hash: begin, end (Unix seconds, inclusive), stock, perUser, sold (live orders), total (stock + sold), restocks. */
  readonly voucher: string
  /** Set of the users who hold an order. */
  readonly users: string
  /** Hash user → number of the last order, id of the last stream entry, ids of the orders held; separated by blanks. */
  readonly holders: string
  /** Stream of what happened to orders, for the workers. */
  readonly orders: string
  /** Hash order id → state and owner. */
  readonly states: string
  /** Sorted set of unpaid orders by deadline. */
  readonly unpaid: string
  /** Sorted set of the latest restocks by time: one sent twice counts once. */
  readonly restocked: string
  /** Hash entry id → how many times it failed through its own fault. */
  readonly faults: string
  /** Stream of entries that no worker could store, with the reason. */
  readonly dead: string
  /** Channel: `placed`, `restock:<n>`. */
  readonly channel: string
}

/** All vouchers ever opened or sold, for workers that serve them all. */
export const registryKey = 'seckill:vouchers'

/** The voucher that a caller's own order id belongs to. The empty braces keep it from being a voucher's name. */
export function chosenOrderKey(orderId: string): string {
  return `seckill{}:order:${orderId}`
}

export function saleKeys(voucherId: string): SaleKeys {
  const voucher = `seckill:${voucherId}`
  const companion = (name: string) => `{${voucher}}:${name}`
  return {
    voucher,
    users: companion('users'),
    holders: companion('holders'),
    orders: companion('orders'),
    states: companion('states'),
    unpaid: companion('unpaid'),
    restocked: companion('restocked'),
    faults: companion('faults'),
    dead: companion('dead'),
    channel: companion('events'),
  }
}
