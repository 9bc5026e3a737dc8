import { orderIdTrouble, userIdTrouble } from '../voucher.ts'

/** What a worker learns about an order, in the order of the stream. */
export interface OrderEvent {
  readonly kind: 'placed' | 'paid' | 'cancelled' | 'expired' | 'refunded'
  readonly voucherId: string
  readonly orderId: string
  readonly userId: string
  /** The sequence number of the order among this user's, from 1; never reused. */
  readonly number: number
  /** Redis' time of the event, milliseconds since 1970. */
  readonly at: number
  /** How many orders the voucher could have when it was placed. @default the value of `setTotal` */
  readonly total?: number
  /** How many earlier events are not stored yet: there must be room for them too. @default 0 */
  readonly reserve?: number
  /** How many orders the user could hold when it was placed. @default no limit except one order per number */
  readonly limit?: number
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
 * - `rejected`: the database has no room for it: the user's row or the order id is taken, or the stock is gone. An
 *   earlier event that is not stored yet may still make room, so a worker asks again once all of those are.
 */
export type StoreResult = { readonly kind: 'stored' } | { readonly kind: 'rejected'; readonly reason: string }

/**
 * Where orders end up. Events are delivered at least once; storing one twice changes nothing, and an end state that
 * arrives before its `placed` still wins.
 *
 * The database is the last guard: unique on voucher, user and number, never more live rows than the voucher's total nor
 * more of one user than he may hold, even where a Redis that was restored from an old AOF sells an item a second time.
 */
export interface OrderStore {
  /** Creates the tables if they do not exist. */
  migrate(): Promise<void>
  /** Sets the minimum of a voucher's allowed orders, for events that do not state it. */
  setTotal(voucherId: string, total: number): Promise<void>
  /**
   * Stores events in one transaction; one result for each. Throws when nothing was committed: an `OrderStoreError` that
   * says whether the events or the database are to blame. After any other error a worker asks the store for something
   * harmless, and blames the events only if it answers.
   */
  store(events: readonly OrderEvent[]): Promise<StoreResult[]>
  get(orderId: string): Promise<StoredOrder | undefined>
  /** Live (not taken back) orders of a voucher. */
  count(voucherId: string): Promise<number>
  close(): Promise<void>
}

/** Why no store can hold this event; undefined: it can. One rule for every database, whatever its columns would take. */
export function eventTrouble(event: OrderEvent): string | undefined {
  const wrongUser = userIdTrouble(event.userId)
  if (wrongUser !== undefined) return `its user id cannot be stored: ${wrongUser}`
  const wrongOrder = orderIdTrouble(event.orderId)
  if (wrongOrder !== undefined) return `its order id cannot be stored: ${wrongOrder}`
  if (!Number.isSafeInteger(event.number) || event.number < 1 || event.number > 2_147_483_647)
    return `its number is ${event.number}`
  if (!Number.isSafeInteger(event.at)) return `its time is ${event.at}`
  return undefined
}
