/** What a worker is told of an order, in the order of the stream. */
export interface OrderEvent {
  readonly kind: 'placed' | 'paid' | 'cancelled' | 'expired'
  readonly voucherId: string
  readonly orderId: string
  readonly userId: string
  /** The how-manieth order of this user it was, from 1. */
  readonly number: number
  /** Redis' time of the event, milliseconds since 1970. */
  readonly at: number
}

/** An order as stored. */
export interface StoredOrder {
  readonly orderId: string
  readonly voucherId: string
  readonly userId: string
  readonly number: number
  readonly state: OrderEvent['kind']
  readonly placedAt: number
  readonly changedAt: number
}

/**
 * How storing one event ended.
 * - `stored`: it is in the database, now or since an earlier delivery of the same event.
 * - `rejected`: the database says that it can never be: the user's row is taken by another order, or the stock is gone.
 */
export type StoreResult = { readonly kind: 'stored' } | { readonly kind: 'rejected'; readonly reason: string }

/**
 * Where orders end up. Events come at least once and, from several workers, in any order; storing one twice changes
 * nothing, and an end state that comes before its `placed` still wins.
 *
 * The database is the last guard: unique on voucher and user (and number), and never more live rows than the voucher's
 * total, even where a Redis that was restored from an old AOF sells an item a second time.
 */
export interface OrderStore {
  /** Makes the tables where they are not there. */
  migrate(): Promise<void>
  /** Sets how many orders a voucher may have. */
  setTotal(voucherId: string, total: number): Promise<void>
  /** Stores events in one transaction; one result for each. Throws when nothing was committed. */
  store(events: readonly OrderEvent[]): Promise<StoreResult[]>
  get(orderId: string): Promise<StoredOrder | undefined>
  /** Live (not taken back) orders of a voucher. */
  count(voucherId: string): Promise<number>
  close(): Promise<void>
}
