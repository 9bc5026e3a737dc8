import { type SimulatedProcess, SimulatedRedis, type VirtualNetwork } from '@firebreak/testkit'
import { DeadLetters } from '../dead-letters/dead-letters.ts'
import { Sale } from '../purchase/sale.ts'
import {
  chosen,
  chosenId,
  churned,
  filled,
  goods,
  LawBroken,
  type ShopLaws,
  scribbled,
  twins,
  users,
  vouchers,
} from './shop-laws.ts'

// Those who use the shop: what they do, and what they are told.

/** Where the shop is, and for how long it is open. */
export interface Street {
  readonly network: VirtualNetwork
  readonly laws: ShopLaws
  readonly isLossy: boolean
  readonly runMs: number
}

const tooLong = 'x'.repeat(256)

/** Buys, pays, cancels and asks for money back; with order ids that never repeat, and some of its own that do. */
export function shop(app: SimulatedProcess, street: Street): void {
  const { network, laws, isLossy, runMs } = street
  const { chance } = app
  const redis = new SimulatedRedis(app, network, 'redis:6379', { resends: chance.next() < 0.5 })
  let ids = 0
  const sale = new Sale(redis, {
    ids: { next: () => `${app.name}-${++ids}` },
    payWithinMs: 1500,
    soldOutMemory: { maxAgeMs: 500 },
    runtime: app.runtime,
  })
  const orders: { voucherId: string; orderId: string }[] = []
  const buy = async (): Promise<void> => {
    const voucher = chance.pick(goods)
    const userId = chance.pick(users)
    const result = await sale.purchase(voucher.id, userId)
    if (result.code === 'soldout') laws.soldOut(app.world, voucher, userId)
    if (result.code === 'sold') {
      laws.sold(voucher.id, result.orderId, userId)
      orders.push({ voucherId: voucher.id, orderId: result.orderId })
      if (isLossy && chance.next() < 0.5) await sale.pay(voucher.id, result.orderId)
    }
    if (result.code !== 'bought') return
    laws.bought(voucher.id, userId, result.orderIds)
    for (const orderId of result.orderIds) orders.push({ voucherId: voucher.id, orderId })
  }
  const buyChosen = async (): Promise<void> => {
    const { id } = chance.pick(chosen)
    const userId = chance.pick(users)
    const orderId = chosenId(chance)
    const bought = await expecting(sale.purchase(id, userId, { orderId }), 'FB_SALE_ORDER_TAKEN')
    if (bought?.code === 'sold') laws.sold(id, orderId, userId)
  }
  const churn = async (): Promise<void> => {
    const { id } = chance.pick(churned)
    const result = await sale.purchase(id, chance.pick(users.slice(0, 2)))
    if ((result.code !== 'sold' && result.code !== 'bought') || result.orderId === undefined) return
    await app.sleep(chance.between(0, 40))
    await sale.cancel(id, result.orderId)
  }
  const misuse = async (): Promise<void> => {
    const wrong = chance.pick([
      { voucherId: 'one', userId: '', code: 'FB_SALE_USER_INVALID' },
      { voucherId: 'one', userId: tooLong, code: 'FB_SALE_USER_INVALID' },
      { voucherId: scribbled, userId: 'ann', code: 'FB_SALE_VOUCHER_INVALID' },
    ])
    const answer = await expecting(sale.purchase(wrong.voucherId, wrong.userId), wrong.code)
    if (answer !== undefined)
      throw new LawBroken(`"${answer.code}" is the answer to user "${wrong.userId.slice(0, 9)}" and ${wrong.voucherId}`)
  }
  const refund = async (voucherId: string, orderId: string): Promise<void> => {
    const toStock = isLossy || chance.next() < 0.5
    const flow = toStock ? undefined : laws.flow(voucherId)
    try {
      const { result } = await sale.refund(voucherId, orderId, { toStock })
      if (flow !== undefined && result === 'done') flow.gone++
      // Perhaps by an earlier sending of this very call.
      if (flow !== undefined && result === 'already') flow.perhapsGone++
    } catch (error) {
      if (flow !== undefined) flow.perhapsGone++
      throw error
    }
  }
  const restock = async (voucherId: string, count: number): Promise<void> => {
    const flow = laws.flow(voucherId)
    if (count < 0) flow.takenAway++
    try {
      await sale.restock(voucherId, count)
      if (count > 0) flow.added++
    } catch (error) {
      if (count > 0) flow.perhapsAdded++
      throw error
    }
  }
  const act = async (): Promise<unknown> => {
    laws.calls++
    const order = orders.length === 0 ? undefined : chance.pick(orders)
    const draw = chance.next()
    if (draw < 0.04) return misuse()
    if (draw < 0.12) return buyChosen()
    if (draw < 0.22 && isLossy) return churn()
    if (draw < 0.6 || order === undefined) return buy()
    if (draw < 0.77) return sale.cancel(order.voucherId, order.orderId)
    if (draw < 0.89) return sale.pay(order.voucherId, order.orderId)
    if (draw < 0.97 || isLossy) return refund(order.voucherId, order.orderId)
    return restock(chance.pick(goods).id, chance.pick([1, 1, -1]))
  }
  app.start(async () => {
    for (const voucher of vouchers) {
      const now = Math.floor(app.world.nowMs / 1000)
      if (!voucher.isByHand) await retried(app, () => sale.open({ ...voucher, begin: now - 1000, end: now + 100_000 }))
    }
    while (app.world.elapsedMs < runMs) {
      await act().catch(onlyConnections)
      await app.sleep(chance.between(1, 60))
    }
  })
}

/** Sells with a worker id that the other twin has too. Their ids are of a moment, as a snowflake's. */
export function twin(app: SimulatedProcess, index: 0 | 1, { network, laws, runMs }: Street): void {
  const redis = new SimulatedRedis(app, network, 'redis:6379', { resends: true })
  let moment = 0
  let count = 0
  const next = (): string => {
    const now = Math.floor(app.world.nowMs / 100)
    count = now === moment ? count + 1 : 0
    moment = now
    return `7-${now}-${count}`
  }
  const sale = new Sale(redis, { ids: { workerId: 7, next }, payWithinMs: 1500, runtime: app.runtime })
  const voucherId = twins[index]!.id
  app.start(async () => {
    while (app.world.elapsedMs < runMs) {
      laws.calls++
      const userId = app.chance.pick(users)
      const buying = expecting(sale.purchase(voucherId, userId), 'FB_SALE_WORKER_TAKEN', 'FB_SALE_VOUCHER_UNKNOWN')
      const result = await buying.catch(onlyConnections)
      if (result?.code === 'sold') laws.sold(voucherId, result.orderId, userId)
      await app.sleep(app.chance.between(20, 120))
    }
  })
}

/** Fills one voucher up, several items at a time, over a client that sends again what it got no answer for. */
export function clerk(app: SimulatedProcess, { network, laws, runMs }: Street): void {
  const redis = new SimulatedRedis(app, network, 'redis:6379', { resends: true })
  const sale = new Sale(redis, { ids: { next: () => 'none' }, runtime: app.runtime })
  for (let hand = 0; hand < 4; hand++) {
    app.start(async () => {
      await app.sleep(400)
      while (app.world.elapsedMs < runMs) {
        laws.calls++
        await sale.restock(filled.id, 1).then(
          () => laws.flow(filled.id).added++,
          (error: Error) => {
            if ((error as { code?: string }).code !== 'FB_SALE_VOUCHER_UNKNOWN') onlyConnections(error)
            laws.flow(filled.id).perhapsAdded++
          },
        )
        await app.sleep(app.chance.between(1, 60))
      }
    })
  }
}

/** Looks at dead letters, and gives them to the workers again or takes them away. */
export function person(app: SimulatedProcess, { network, laws, runMs }: Street): void {
  const letters = new DeadLetters(new SimulatedRedis(app, network, 'redis:6379'))
  const look = async (voucherId: string): Promise<void> => {
    const list = await letters.list(voucherId)
    for (const { fields, reason } of list) laws.dead(voucherId, fields, reason)
    const seen = list.map(({ id }) => id)
    const isReplaying = app.world.elapsedMs < runMs && app.chance.next() < 0.5
    await (isReplaying ? letters.replay(voucherId, seen) : letters.discard(voucherId, seen))
  }
  app.start(async () => {
    for (;;) {
      for (const { id } of vouchers) await look(id).catch(onlyConnections)
      // In the end there is time for all that is left.
      await (app.world.elapsedMs < runMs ? app.sleep(app.chance.between(400, 1400)) : app.sleep(150))
    }
  })
}

async function expecting<T>(work: Promise<T>, ...codes: readonly string[]): Promise<T | undefined> {
  try {
    return await work
  } catch (error) {
    if (codes.includes((error as { code?: string }).code ?? '')) return undefined
    throw error
  }
}

/** A lost connection is the fault's; what the sale itself says is not. */
function onlyConnections(error: Error): undefined {
  if (error instanceof LawBroken || 'code' in error || error.name === 'ReplyError') throw error
  return undefined
}

async function retried(app: SimulatedProcess, work: () => Promise<unknown>): Promise<void> {
  for (;;) {
    try {
      await work()
      return
    } catch {
      await app.sleep(100)
    }
  }
}
