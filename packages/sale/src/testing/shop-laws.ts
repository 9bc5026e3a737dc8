import type { Chance, SimulatedWorld, VirtualValkey } from '@firebreak/testkit'
import { entriesOf, fieldsOf } from '../orders/stream-entry.ts'
import { saleKeys } from '../sale-keys.ts'
import type { OrderEvent, OrderStore } from '../store/order-store.ts'

/** A law of the shop does not hold. */
export class LawBroken extends Error {}

/** What is sold in the simulation. */
export interface ModelVoucher {
  readonly id: string
  readonly stock: number
  readonly perUser: number
  /** Its hash was written with `begin`, `end` and `stock` alone, as the tutorials do. */
  readonly isByHand?: true
  /** Bought with order ids that are used for another voucher too. */
  readonly hasTwins?: true
}

/** What those who buy from everything choose from. */
export const goods: readonly ModelVoucher[] = [
  { id: 'one', stock: 4, perUser: 1 },
  { id: 'two', stock: 5, perUser: 2 },
  { id: 'by-hand', stock: 5, perUser: 1, isByHand: true },
]
/** Bought with order ids of the buyers' own, which repeat. */
export const chosen: readonly ModelVoucher[] = [
  { id: 'chosen-1', stock: 1000, perUser: 1000, hasTwins: true },
  { id: 'chosen-2', stock: 12, perUser: 1000, hasTwins: true },
]
const chosenIds = 30
/** An order id of a buyer's own. */
export function chosenId(chance: Chance): string {
  return `chosen-${chance.below(chosenIds)}`
}
/** True for ids that are forgotten again and again, as if a week had passed: sold twice, the later is a dead letter. */
export function isForgotten(orderId: string): boolean {
  return /^chosen-\d*[02468]$/.test(orderId)
}
/** All that are. */
export const forgotten: readonly string[] = Array.from({ length: chosenIds }, (_, id) => `chosen-${id}`).filter(
  isForgotten,
)
/** Sold by two processes with one worker id. */
export const twins: readonly ModelVoucher[] = [
  { id: 'left', stock: 1000, perUser: 1000 },
  { id: 'right', stock: 1000, perUser: 1000 },
]
/** Bought and cancelled again and again, by few. */
export const churned: readonly ModelVoucher[] = [
  { id: 'churned-1', stock: 1000, perUser: 1 },
  { id: 'churned-2', stock: 1, perUser: 1 },
]
/** Only ever filled up. */
export const filled: ModelVoucher = { id: 'filled', stock: 10, perUser: 1 }
/** Its stock is no number. */
export const scribbled = 'scribbled'

export const vouchers: readonly ModelVoucher[] = [...goods, ...chosen, ...twins, ...churned, filled]
export const users: readonly string[] = ['ann', 'ann ', 'Ann', 'bob', 'eve', 'joe']

/** What became of a voucher's items: what was acknowledged, and what nobody knows of. */
interface Flow {
  added: number
  perhapsAdded: number
  /** No more than were left. */
  takenAway: number
  /** Refunded, and not on sale again. */
  gone: number
  perhapsGone: number
}

interface Entry {
  readonly id: string
  readonly fields: Map<string, string>
}

/** What an onlooker notes while the shop is open, and what must be true of it in the end. */
export class ShopLaws {
  readonly #valkey: VirtualValkey
  readonly #isLossy: boolean
  readonly #stored = new Map<string, string[]>()
  /** The live orders that the store has, by voucher and user. */
  readonly #held = new Map<string, Set<string>>()
  /** Every entry that was ever in a stream, by voucher; streams are trimmed meanwhile. */
  readonly #entries = new Map<string, Map<string, Entry>>()
  /** Who was told that he has an order: by order and voucher. */
  readonly #told = new Map<string, { readonly voucherId: string; readonly orderId: string; readonly userId: string }>()
  /** Dead letters that a person has seen, by order and voucher. */
  readonly #dead = new Set<string>()
  readonly #flows = new Map<string, Flow>()
  calls = 0

  constructor(valkey: VirtualValkey, isLossy: boolean) {
    this.#valkey = valkey
    this.#isLossy = isLossy
  }

  /** What became of the items of a voucher, to be noted. */
  flow(voucherId: string): Flow {
    const flow = this.#flows.get(voucherId) ?? { added: 0, perhapsAdded: 0, takenAway: 0, gone: 0, perhapsGone: 0 }
    this.#flows.set(voucherId, flow)
    return flow
  }

  /** Notes the first time that an event is stored. */
  stored({ voucherId, userId, kind, orderId }: OrderEvent): void {
    const list = this.#stored.get(`${voucherId} ${userId}`) ?? []
    const text = `${kind} ${orderId}`
    if (list.includes(text)) return
    list.push(text)
    this.#stored.set(`${voucherId} ${userId}`, list)
    const held = this.#held.get(`${voucherId} ${userId}`) ?? new Set()
    this.#held.set(`${voucherId} ${userId}`, held)
    const isLive = kind === 'placed' || kind === 'paid'
    if (!isLive) held.delete(orderId)
    // Its end may be stored first, where its beginning was a dead letter that somebody replays.
    else if (!list.some((event) => event.endsWith(` ${orderId}`) && !/^(placed|paid) /.test(event))) held.add(orderId)
    const { perUser } = vouchers.find(({ id }) => id === voucherId)!
    if (held.size > perUser)
      throw new LawBroken(`the store has ${held.size} live orders of ${userId} for ${voucherId}: ${list.join()}`)
  }

  /** At no moment the store has more live orders than there are items; where nothing is lost, more are put on sale. */
  counted(voucherId: string, live: number): void {
    const { stock } = vouchers.find(({ id }) => id === voucherId)!
    if (this.#isLossy && live > stock) throw new LawBroken(`the store has ${live} live orders of ${stock} ${voucherId}`)
  }

  sold(voucherId: string, orderId: string, userId: string): void {
    const known = this.#told.get(`${orderId} ${voucherId}`)
    if (known !== undefined && known.userId !== userId && !this.#isLossy)
      throw new LawBroken(`order ${orderId} of ${voucherId} was sold to ${known.userId} and to ${userId}`)
    this.#told.set(`${orderId} ${voucherId}`, { voucherId, orderId, userId })
  }

  /** A buyer who has bought is told his own orders, all of them his. */
  bought(voucherId: string, userId: string, orderIds: readonly string[]): void {
    if (orderIds.length === 0) throw new LawBroken(`${userId} has bought ${voucherId}, and is told no order`)
    for (const orderId of orderIds) {
      const known = this.#told.get(`${orderId} ${voucherId}`)
      if (known !== undefined && known.userId !== userId)
        throw new LawBroken(`${userId} is told order ${orderId} of ${known.userId}`)
    }
  }

  /** "Sold out" is no answer for a buyer who may hold one and has held it for a while. */
  soldOut(world: SimulatedWorld, { id, perUser }: ModelVoucher, userId: string): void {
    if (this.#isLossy || perUser > 1) return
    const holder = String(this.#valkey.ask('HGET', saleKeys(id).holders, userId) ?? '')
    const [, entryId = '', ...orders] = holder.split(' ')
    const heldMs = world.nowMs - Number(entryId.split('-')[0])
    if (orders.length > 0 && heldMs > 800)
      throw new LawBroken(`${userId} holds ${orders[0]} of ${id}, and is told "sold out"`)
  }

  /** Somebody looked at a dead letter. */
  dead(voucherId: string, fields: Readonly<Record<string, string>>, reason: string): void {
    const voucher = vouchers.find(({ id }) => id === voucherId)
    if (!this.#isLossy && !(voucher?.hasTwins && isForgotten(fields['order'] ?? '')))
      throw new LawBroken(`a sold order of ${voucherId} is a dead letter: ${reason} (${JSON.stringify(fields)})`)
    this.#dead.add(`${fields['order']} ${voucherId}`)
  }

  /** Keeps what is in the streams now. */
  readStreams(): void {
    for (const { id } of vouchers) {
      const known = this.#isLossy ? new Map<string, Entry>() : (this.#entries.get(id) ?? new Map<string, Entry>())
      for (const entry of entriesOf(this.#valkey.ask('XRANGE', saleKeys(id).orders, '-', '+')))
        known.set(entry.id, { id: entry.id, fields: fieldsOf(entry) })
      this.#entries.set(id, known)
    }
  }

  /** When all is well again and everything has settled. */
  async checkEnd(store: OrderStore): Promise<void> {
    this.readStreams()
    for (const voucher of vouchers) {
      this.#checkSettled(voucher)
      await this.#checkVoucher(voucher, store)
    }
    for (const { voucherId, orderId, userId } of this.#told.values()) {
      const row = await store.get(orderId)
      const isStored = row?.voucherId === voucherId && row.userId === userId
      if (isStored || this.#isLossy || this.#dead.has(`${orderId} ${voucherId}`)) continue
      throw new LawBroken(
        `order ${orderId} of ${voucherId} was told as sold to ${userId}, and is neither stored nor a dead letter`,
      )
    }
  }

  #checkSettled({ id }: ModelVoucher): void {
    const keys = saleKeys(id)
    const length = Number(this.#valkey.ask('XLEN', keys.orders))
    const pending = length === 0 ? 0 : Number((this.#valkey.ask('XPENDING', keys.orders, 'orders') as unknown[])[0])
    if (pending !== 0) throw new LawBroken(`${pending} entries of ${id} are still pending`)
    const unpaid = (this.#valkey.ask('HVALS', keys.states) as string[]).filter((state) => state.startsWith('placed|'))
    if (unpaid.length > 0) throw new LawBroken(`${unpaid.length} orders of ${id} were never paid, and never expired`)
    // Whole nodes of the stream are trimmed, of five entries each here.
    if (!this.#isLossy && length > 10)
      throw new LawBroken(`${length} entries of ${id} were kept although all are stored`)
  }

  async #checkVoucher({ id, stock, perUser, hasTwins }: ModelVoucher, store: OrderStore): Promise<void> {
    const keys = saleKeys(id)
    const entries = [...this.#entries.get(id)!.values()].map(({ fields }) => fields)
    checkNumbers(id, entries)
    const live = await store.count(id)
    const total = this.#isLossy ? stock : Number(this.#valkey.ask('HGET', keys.voucher, 'total') ?? Number.NaN)
    if (live > total) throw new LawBroken(`${id} has ${live} live rows, and a total of ${total}`)
    const heldBy = new Map<string, number>()
    for (const orderId of new Set(entries.map((fields) => fields.get('order')!))) {
      const redisState = String(this.#valkey.ask('HGET', keys.states, orderId)).split('|')[0]
      const row = await store.get(orderId)
      // Where Redis lost what the store has, the store is ahead of it.
      const isRight = this.#isLossy ? row !== undefined : row?.state === redisState
      if (!isRight && !this.#dead.has(`${orderId} ${id}`))
        throw new LawBroken(`order ${orderId} is ${redisState} in Redis and ${row?.state} in the store`)
      if (row?.state === 'placed' || row?.state === 'paid') heldBy.set(row.userId, (heldBy.get(row.userId) ?? 0) + 1)
    }
    for (const [userId, held] of heldBy) if (held > perUser) throw new LawBroken(`${userId} holds ${held} of ${id}`)
    if (this.#isLossy || hasTwins) return
    if (entries.length > 0 && live !== Number(this.#valkey.ask('HGET', keys.voucher, 'sold')))
      throw new LawBroken(`${id} has ${live} rows, not what was sold`)
    this.#checkTotal(id, stock, total)
    this.#checkOrder(id, entries)
  }

  /** What was filled up counts once, and what is gone is gone. */
  #checkTotal(id: string, stock: number, total: number): void {
    const { added, perhapsAdded, takenAway, gone, perhapsGone } = this.flow(id)
    const least = stock + added - takenAway - gone - perhapsGone
    const most = stock + added + perhapsAdded - gone
    // A hash made by hand that nobody bought from has no total.
    if (!Number.isNaN(total) && (total < least || total > most))
      throw new LawBroken(`${id} has ${total} items; between ${least} and ${most} were put on sale`)
  }

  /** The events of each user were first stored in the order of the stream. */
  #checkOrder(id: string, entries: readonly Map<string, string>[]): void {
    const byUser = Map.groupBy(entries, (fields) => fields.get('user')!)
    for (const [userId, happened] of byUser) {
      const wanted = happened.map((fields) => `${fields.get('kind')} ${fields.get('order')}`)
      const stored = this.#stored.get(`${id} ${userId}`) ?? []
      if (stored.join() !== wanted.join())
        throw new LawBroken(`events of ${userId} were stored as ${stored.join()} and happened as ${wanted.join()}`)
    }
  }
}

/** A replayed letter is in the stream twice; two orders never have one number. */
function checkNumbers(id: string, entries: readonly Map<string, string>[]): void {
  const seen = new Map<string, string>()
  for (const fields of entries) {
    if (fields.get('kind') !== 'placed') continue
    const orderId = fields.get('order')!
    const number = `${fields.get('user')}|${fields.get('number')}`
    const other = seen.get(number) ?? orderId
    if (other !== orderId) throw new LawBroken(`number ${number} of ${id} was given to ${other} and to ${orderId}`)
    seen.set(number, orderId)
  }
}
