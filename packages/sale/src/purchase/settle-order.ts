import { loadScript, publishCommand, type Redis } from '@firebreak/redis'
import { type SaleKeys, saleKeys } from '../sale-keys.ts'
import { runVoucherScript } from './run-voucher-script.ts'

const settleScript = loadScript(new URL('./settle.lua', import.meta.url))

/** The states of an order. */
export type OrderState = 'placed' | 'paid' | 'cancelled' | 'expired' | 'refunded'

/** The answer to a payment, cancellation, refund or expiry; each counts only once. */
export interface SettleResult {
  readonly result: 'done' | 'already' | 'refused' | 'early' | 'unknown'
  readonly state: OrderState | ''
}

/** The keys of the purchase and the settle script, in their order. */
export function scriptKeys(keys: SaleKeys): string[] {
  return [keys.voucher, keys.users, keys.holders, keys.orders, keys.states, keys.unpaid]
}

/** Changes an order's state; with `toStock` a returned item is on sale again. */
export async function settleOrder(
  redis: Redis,
  voucherId: string,
  orderId: string,
  state: Exclude<OrderState, 'placed'>,
  toStock = true,
): Promise<SettleResult> {
  const keys = saleKeys(voucherId)
  const args = [orderId, state, keys.channel, await publishCommand(redis), toStock ? '1' : '0']
  const [result, now] = (await runVoucherScript(redis, voucherId, settleScript, scriptKeys(keys), args)) as [
    SettleResult['result'],
    OrderState | '',
  ]
  return { result, state: now }
}

/** Takes back orders whose time to pay is over; returns their number. Any number of processes may call it. */
export async function expireUnpaid(redis: Redis, voucherId: string, limit: number): Promise<number> {
  const { unpaid } = saleKeys(voucherId)
  const time = (await redis.send(['TIME'], { key: unpaid })) as [string, string]
  const now = Number(time[0]) * 1000 + Math.floor(Number(time[1]) / 1000)
  const range = ['ZRANGE', unpaid, '-inf', now, 'BYSCORE', 'LIMIT', 0, limit] as const
  const due = (await redis.send(range)) as string[]
  const results = await Promise.all(due.map((orderId) => settleOrder(redis, voucherId, orderId, 'expired')))
  return results.filter(({ result }) => result === 'done').length
}
