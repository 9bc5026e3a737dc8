import type { OrderEvent, StoredOrder, StoreResult } from './order-store.ts'
import type { SqlConnection, SqlDatabase, SqlRow } from './sql-order-store.ts'

type State = StoredOrder['state']

/** The earlier states of an order in this one; an event for one of them is a repeated delivery. */
const history: Readonly<Record<State, readonly State[]>> = {
  placed: ['placed'],
  paid: ['placed', 'paid'],
  cancelled: ['placed', 'cancelled'],
  expired: ['placed', 'expired'],
  refunded: ['placed', 'paid', 'refunded'],
}

/** The states that an order can move to; a refund is accepted even if its payment was never stored. */
const next: Readonly<Record<State, readonly State[]>> = {
  placed: ['paid', 'cancelled', 'expired', 'refunded'],
  paid: ['refunded'],
  cancelled: [],
  expired: [],
  refunded: [],
}

const stored: StoreResult = { kind: 'stored' }

interface VoucherRow {
  total: number
  live: number
  isChanged: boolean
}

/**
 * The rows that a batch of events touches, read and locked at its start.
 *
 * The vouchers' rows are locked first, in the order of their ids: workers take turns at them, so nothing else of these
 * vouchers changes meanwhile and no two transactions wait for each other. All rules are then decided in memory.
 */
export class OrderBatch {
  readonly #connection: SqlConnection
  readonly #vouchers = new Map<string, VoucherRow>()
  readonly #orders = new Map<string, StoredOrder>()
  /** Numbers of live orders by voucher and user. */
  readonly #held = new Map<string, Set<number>>()

  private constructor(connection: SqlConnection) {
    this.#connection = connection
  }

  static async open(
    database: SqlDatabase,
    connection: SqlConnection,
    events: readonly OrderEvent[],
  ): Promise<OrderBatch> {
    const batch = new OrderBatch(connection)
    for (const voucherId of [...new Set(events.map((event) => event.voucherId))].sort())
      await batch.#lock(database, voucherId)
    await batch.#readOrders(
      'order_id',
      events.map(({ orderId }) => orderId),
      ({ orderId }) => orderId,
    )
    await batch.#readHeld(events)
    return batch
  }

  async #lock(database: SqlDatabase, voucherId: string): Promise<void> {
    const sql = `SELECT total, live FROM sale_vouchers WHERE voucher_id = ?${database.forUpdate}`
    let row = (await this.#connection.query(sql, [voucherId])).rows[0]
    if (row === undefined) {
      await this.#connection.query(database.insertIgnore('sale_vouchers', ['voucher_id', 'total', 'live']), [
        voucherId,
        0,
        0,
      ])
      row = (await this.#connection.query(sql, [voucherId])).rows[0]
    }
    const { total, live } = row as { total: unknown; live: unknown }
    this.#vouchers.set(voucherId, { total: Number(total), live: Number(live), isChanged: false })
  }

  async #readOrders(column: string, values: readonly string[], key: (order: StoredOrder) => string): Promise<void> {
    const wanted = [...new Set(values)]
    const sql = `SELECT * FROM sale_orders WHERE ${column} IN (${wanted.map(() => '?').join(', ')})`
    const { rows } = await this.#connection.query(sql, wanted)
    for (const row of rows) {
      const order = orderOf(row)
      this.#orders.set(key(order), order)
    }
  }

  async #readHeld(events: readonly OrderEvent[]): Promise<void> {
    const byVoucher = Map.groupBy(events, ({ voucherId }) => voucherId)
    for (const [voucherId, ofVoucher] of byVoucher) {
      const users = [...new Set(ofVoucher.map(({ userId }) => userId))]
      const marks = users.map(() => '?').join(', ')
      const sql = `SELECT user_id, live_number FROM sale_orders WHERE voucher_id = ? AND user_id IN (${marks}) AND live_number IS NOT NULL`
      const { rows } = await this.#connection.query(sql, [voucherId, ...users])
      for (const userId of users) this.#held.set(`${voucherId} ${userId}`, new Set())
      for (const row of rows) this.#held.get(`${voucherId} ${row['user_id']}`)?.add(Number(row['live_number']))
    }
  }

  async apply(event: OrderEvent): Promise<StoreResult> {
    const known = this.#orders.get(event.orderId)
    if (known === undefined) return this.#add(event)
    const isSame = known.voucherId === event.voucherId && known.userId === event.userId && known.number === event.number
    if (!isSame) {
      const of = `number ${known.number} of user ${known.userId}, voucher ${known.voucherId}`
      return rejected(`order id ${event.orderId} is taken by ${of}; two sources of ids may share a worker id`)
    }
    if (history[known.state].includes(event.kind)) return stored
    if (!next[known.state].includes(event.kind))
      return rejected(`order ${event.orderId} is ${known.state} in the store; it cannot become ${event.kind}`)
    await this.#move(event, known)
    return stored
  }

  /** Writes the vouchers' counts; the last step of the transaction. */
  async finish(): Promise<void> {
    for (const [voucherId, { total, live, isChanged }] of this.#vouchers) {
      if (isChanged)
        await this.#connection.query('UPDATE sale_vouchers SET total = ?, live = ? WHERE voucher_id = ?', [
          total,
          live,
          voucherId,
        ])
    }
  }

  /** An order that is not stored yet. One whose `placed` was never stored is created in its current state. */
  async #add(event: OrderEvent): Promise<StoreResult> {
    const isLive = event.kind === 'placed' || event.kind === 'paid'
    const voucher = this.#vouchers.get(event.voucherId)!
    const held = this.#held.get(`${event.voucherId} ${event.userId}`)!
    if (isLive) {
      const { limit = Number.POSITIVE_INFINITY, reserve = 0 } = event
      // While earlier events are not stored yet, an order uses the total at its own time, with room for them. The
      // oldest may find later orders that were placed after a restock; then their total counts.
      const highest = Math.max(event.total ?? 0, voucher.total)
      const total = reserve === 0 ? highest : (event.total ?? voucher.total)
      if (held.has(event.number))
        return rejected(`user ${event.userId} has order number ${event.number} of voucher ${event.voucherId} already`)
      if (held.size >= limit)
        return rejected(
          `user ${event.userId} holds ${held.size} orders of voucher ${event.voucherId}, and may hold ${limit}`,
        )
      if (voucher.live + reserve >= total)
        return rejected(`voucher ${event.voucherId} has all the orders it may have (${total})`)
    }
    const columns = ['order_id', 'voucher_id', 'user_id', 'number', 'state', 'placed_at', 'changed_at']
    const values = [event.orderId, event.voucherId, event.userId, event.number, event.kind, event.at, event.at]
    if (isLive) {
      columns.push('live_number')
      values.push(event.number)
    }
    const sql = `INSERT INTO sale_orders (${columns.join(', ')}) VALUES (${columns.map(() => '?').join(', ')})`
    await this.#connection.query(sql, values)
    this.#orders.set(event.orderId, { ...event, state: event.kind, placedAt: event.at, changedAt: event.at })
    if (isLive) {
      held.add(event.number)
      voucher.live++
      voucher.total = Math.max(event.total ?? 0, voucher.total)
      voucher.isChanged = true
    }
    return stored
  }

  async #move(event: OrderEvent, known: StoredOrder): Promise<void> {
    const isLive = event.kind === 'paid'
    const sql = `UPDATE sale_orders SET state = ?, changed_at = ?${isLive ? '' : ', live_number = NULL'} WHERE order_id = ?`
    await this.#connection.query(sql, [event.kind, event.at, event.orderId])
    this.#orders.set(event.orderId, { ...known, state: event.kind, changedAt: event.at })
    if (isLive) return
    const voucher = this.#vouchers.get(event.voucherId)!
    voucher.live--
    voucher.isChanged = true
    this.#held.get(`${event.voucherId} ${event.userId}`)!.delete(event.number)
  }
}

function rejected(reason: string): StoreResult {
  return { kind: 'rejected', reason }
}

/** An order from its row. */
export function orderOf(row: SqlRow): StoredOrder {
  return {
    orderId: String(row['order_id']),
    voucherId: String(row['voucher_id']),
    userId: String(row['user_id']),
    number: Number(row['number']),
    state: String(row['state']) as StoredOrder['state'],
    placedAt: Number(row['placed_at']),
    changedAt: Number(row['changed_at']),
  }
}
