import { describeValue } from '@firebreak/core'
import type { FastifyInstance, FastifyRequest } from 'fastify'
import { z } from 'zod'
import type { Alarm } from '../alarms/alarm-board.ts'
import { ApiProblem } from '../errors.ts'
import type { HubPlugin, PluginHost } from '../http/hub-server.ts'
import { explainStoreTrouble } from '../store/store-trouble.ts'

/** One voucher; the JSON of `GET /v1/sales`. */
export interface SaleVoucher {
  readonly id: string
  readonly deadLetters: number
}

/** An order that no worker could store. */
export interface SaleLetter {
  readonly id: string
  readonly voucherId: string
  readonly deadAt: number
  readonly reason: string
  readonly cause: string | undefined
  readonly fields: Readonly<Record<string, string>>
}

/** The hub's source for sales: `SaleBoard` and `DeadLetters` of `@firebreak/sale` over the sale's Redis. */
export interface SaleDesk {
  vouchers(): Promise<readonly SaleVoucher[]>
  orders(voucherId: string, limit: number): Promise<readonly object[]>
  letters(voucherId: string, limit: number): Promise<readonly SaleLetter[]>
  /** How many of these letters existed. */
  settle(voucherId: string, ids: readonly string[], action: 'replay' | 'discard'): Promise<number>
}

const lookEveryMs = 5000
const maxTroubled = 20
const shownOrders = 25
const shownLetters = 200
const settleBody = z.strictObject({
  ids: z
    .array(z.string().regex(/^\d{1,20}-\d{1,20}$/))
    .min(1)
    .max(1000),
  action: z.enum(['replay', 'discard']),
})

/**
 * The sale in the hub's API. Without a desk the hub knows no sale: the page explains how to configure one.
 *
 *     GET  /v1/sales                             { isKnown, vouchers }
 *     GET  /v1/sales/{voucher}                   { orders, letters }
 *     POST /v1/sales/{voucher}/dead-letters      { ids, action } → { done }
 */
export function salePlugin(desk: SaleDesk | undefined): HubPlugin {
  return (app, host) => {
    if (desk !== undefined) watchSale(desk, app, host)
    app.get('/v1/sales', async () => ({
      isKnown: desk !== undefined,
      vouchers: desk === undefined ? [] : await answered(() => desk.vouchers()),
    }))
    app.get('/v1/sales/:voucher', async (request) => {
      const known = deskOf(desk)
      const voucherId = voucherOf(request)
      const [orders, letters] = await answered(() =>
        Promise.all([known.orders(voucherId, shownOrders), known.letters(voucherId, shownLetters)]),
      )
      return { orders, letters }
    })
    app.post('/v1/sales/:voucher/dead-letters', (request) => settle(deskOf(desk), host, request))
  }
}

/**
 * Orders that no worker could store, and an unreachable Redis of a sale, raise alarms until a check finds them gone.
 */
function watchSale(desk: SaleDesk, app: FastifyInstance, { passingAlarms, runtime }: PluginHost): void {
  let shown: readonly string[] = []
  const look = async () => {
    const alarms = await troublesOf(desk)
    const ids = alarms.map(({ id }) => id)
    for (const id of shown) if (!ids.includes(id)) passingAlarms.end(id)
    for (const alarm of alarms) passingAlarms.show(alarm, 6 * lookEveryMs)
    shown = ids
  }
  const timer = runtime.timers.setInterval(() => void look(), lookEveryMs)
  app.addHook('onClose', async () => timer.cancel())
}

async function troublesOf(desk: SaleDesk): Promise<Alarm[]> {
  try {
    const troubled = (await desk.vouchers()).filter(({ deadLetters }) => deadLetters > 0).slice(0, maxTroubled)
    return troubled.map(({ id, deadLetters }) => ({
      id: `sale:${id}/dead-letters`,
      severity: 'warning',
      cause: `sale: ${deadLetters} ${deadLetters === 1 ? 'order' : 'orders'} of voucher ${id} could not be stored`,
      retry: 'they wait as dead letters: replay or discard them',
    }))
  } catch (error) {
    const cause = `sale: its Redis (--sale-redis) cannot be asked: ${explainStoreTrouble(error)}`
    return [{ id: 'sale:redis', severity: 'warning', cause, retry: 'retrying every five seconds' }]
  }
}

async function settle(desk: SaleDesk, host: PluginHost, request: FastifyRequest): Promise<{ done: number }> {
  const parsed = settleBody.safeParse(request.body)
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    const field = issue!.path.join('.') || 'body'
    throw new ApiProblem(400, 'FB_INPUT_INVALID', `${field}: ${issue!.message}`, field)
  }
  const voucherId = voucherOf(request)
  const { ids, action } = parsed.data
  const done = await answered(() => desk.settle(voucherId, ids, action))
  if (done === 0) {
    const message = `voucher ${describeValue(voucherId)} has none of these dead letters: they have already been handled`
    throw new ApiProblem(404, 'FB_NOT_FOUND', message, 'ids')
  }
  const what = `${action} ${done} dead ${done === 1 ? 'letter' : 'letters'} of voucher ${voucherId}`
  await host.audit(host.whoOf(request), what, { ids }, null)
  return { done }
}

function deskOf(desk: SaleDesk | undefined): SaleDesk {
  if (desk !== undefined) return desk
  throw new ApiProblem(404, 'FB_NOT_FOUND', 'this hub has no sale: start it with --sale-redis redis://host:port')
}

function voucherOf(request: FastifyRequest): string {
  return (request.params as { readonly voucher: string }).voucher
}

/** The sale's Redis may be unreachable, which is not the hub's fault. */
async function answered<T>(ask: () => Promise<T>): Promise<T> {
  try {
    return await ask()
  } catch (error) {
    throw new ApiProblem(503, 'FB_SALE_AWAY', `the Redis of the sale does not answer: ${(error as Error).message}`)
  }
}
