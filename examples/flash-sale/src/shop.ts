import { localLimiter, tokenBucket } from '@firebreak/limits'
import type { OrderStore, Sale } from '@firebreak/sale'
import Fastify, { type FastifyInstance } from 'fastify'
import type { Redis } from 'ioredis'

/** What the shop is made of. */
export interface ShopOptions {
  /** The client that product pages are read with: protected or bare, the shop does not know. */
  readonly redis: Redis
  readonly sale: Sale
  readonly store: OrderStore
  /** Purchase tries a second that one user may make. @default 1 */
  readonly triesPerUser?: number
  /** Purchase tries a second that this process takes at all. @default 5000 */
  readonly triesInAll?: number
  /** Tells a person from a robot; called with what the browser answered to the challenge. @default anything but empty */
  readonly isHuman?: (answer: string) => boolean
}

interface Purchase {
  readonly user: string
  readonly answer: string
}

const orderNeeds = {
  type: 'object',
  required: ['user', 'answer'],
  properties: { user: { type: 'string' }, answer: { type: 'string' } },
}

/** A small shop: product page, purchase, order status. */
export function makeShop(options: ShopOptions): FastifyInstance {
  const { redis, sale, store, triesPerUser = 1, triesInAll = 5000, isHuman = (answer) => answer !== '' } = options
  const perUser = localLimiter(tokenBucket({ capacity: triesPerUser, refill: triesPerUser, perMs: 1000 }), {
    maxKeys: 200_000,
  })
  const inAll = localLimiter(tokenBucket({ capacity: triesInAll, refill: triesInAll, perMs: 1000 }), { maxKeys: 10 })
  const app = Fastify({ logger: false, forceCloseConnections: true })

  // The page that everybody looks at. One read of one key: the hot key of the sale.
  app.get<{ Params: { id: string } }>('/product/:id', async (request, reply) => {
    const product = await redis.get(`product:${request.params.id}`)
    if (product === null) return reply.code(404).send({ error: 'there is no such product' })
    return reply.type('application/json').send(product)
  })

  app.post<{ Params: { voucher: string }; Body: Purchase }>(
    '/buy/:voucher',
    { schema: { body: orderNeeds } },
    async (request, reply) => {
      const { user, answer } = request.body
      if (!isHuman(answer)) return reply.code(403).send({ error: 'please solve the challenge' })
      const limited = [inAll.take('all'), perUser.take(user)].find(({ allowed }) => !allowed)
      if (limited !== undefined) {
        const seconds = Math.ceil((limited.retryAfterMs ?? 1000) / 1000)
        return reply.code(429).header('retry-after', seconds).send({ error: 'too many tries; wait a moment' })
      }
      const result = await sale.purchase(request.params.voucher, user)
      return reply.code(result.code === 'sold' ? 201 : 409).send(result)
    },
  )

  app.get<{ Params: { voucher: string; order: string } }>('/order/:voucher/:order', async (request, reply) => {
    const { voucher, order } = request.params
    const stored = await store.get(order)
    if (stored !== undefined) return stored
    // Sold, but not written down yet: Redis knows it at once.
    const placed = await sale.orderState(voucher, order)
    return placed === undefined
      ? reply.code(404).send({ error: 'there is no such order' })
      : { ...placed, isStored: false }
  })

  app.post<{ Params: { voucher: string; order: string } }>('/cancel/:voucher/:order', (request) =>
    sale.cancel(request.params.voucher, request.params.order),
  )
  return app
}
