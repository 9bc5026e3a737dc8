// Buys for many users at once: node buyer-process.ts '{"port":…}'. Prints one line of JSON with the answers by code.
import { Snowflake } from '@firebreak/ids'
import { Sale } from '@firebreak/sale'
import { Redis } from 'ioredis'

const { port, voucher, number, users, inFlight } = JSON.parse(process.argv[2]!) as {
  port: number
  voucher: string
  number: number
  users: string[]
  inFlight: number
}
const redis = new Redis(port)
const sale = new Sale(redis, { ids: new Snowflake({ workerId: number }) })
const codes: Record<string, number> = {}
const orders: string[] = []
let next = 0
await Promise.all(
  Array.from({ length: inFlight }, async () => {
    while (next < users.length) {
      const result = await sale.purchase(voucher, users[next++]!)
      codes[result.code] = (codes[result.code] ?? 0) + 1
      if (result.code === 'sold') orders.push(result.orderId)
    }
  }),
)
process.stdout.write(`${JSON.stringify({ codes, orders })}\n`)
await sale.close()
redis.disconnect()
