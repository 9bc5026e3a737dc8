import {
  type FaultChoice,
  FaultPlayer,
  type FaultyProcess,
  processFaults,
  randomSchedule,
  type SeedRuns,
  type SimulatedProcess,
  SimulatedRedis,
  type SimulatedWorld,
  VirtualNetwork,
  VirtualValkey,
} from '@firebreak/testkit'
import { OrderWorker } from '../orders/order-worker.ts'
import { entriesOf, fieldsOf } from '../orders/stream-entry.ts'
import { Sale } from '../purchase/sale.ts'
import { saleKeys } from '../sale-keys.ts'
import type { OrderEvent, OrderStore } from '../store/order-store.ts'
import { sqliteOrderStore } from '../store/sqlite.ts'

// A shop in a simulation: buyers who buy, pay, cancel and ask for their money back, three workers that are killed and
// frozen, a store that goes down and is slow, a Redis that is cut off, killed, and (in the second model) loses writes.
//
// Laws, always: no more live rows than the total, none of a user beyond what he may hold, no order number of a user
// twice, the events of a user stored in the order of the stream, a buyer who "has bought" is told his own orders.
// In the end: nothing is pending, every order of the stream has the same state in the store as in Redis; without lost
// writes there is no dead letter and nobody who was told "sold" is without a row.

const vouchers = [
  { id: 'one', stock: 4, perUser: 1 },
  { id: 'two', stock: 5, perUser: 2 },
] as const
const users = ['ann', 'ann ', 'Ann', 'bob', 'eve', 'joe']
const workerNames = ['worker-1', 'worker-2', 'worker-3']
const runMs = 8000

const calmFaults: FaultChoice[] = [
  { kind: 'kill', targets: workerNames, forMs: [10, 2000], weight: 3 },
  { kind: 'freeze', targets: workerNames, forMs: [50, 3000], weight: 3 },
  { kind: 'storeDown', targets: ['store'], forMs: [100, 4000], weight: 2 },
  { kind: 'cut', targets: [...workerNames, 'shop-1', 'redis'], weight: 2 },
  { kind: 'freeze', targets: ['redis'], forMs: [10, 1500] },
  { kind: 'kill', targets: ['redis'], forMs: [10, 1000] },
]
const lossyFaults: FaultChoice[] = [
  ...calmFaults,
  { kind: 'loseWrites', targets: ['redis'], amount: [20, 600], weight: 4 },
]

class Laws {
  readonly stored = new Map<string, string[]>()
  readonly told = new Map<string, { voucherId: string; userId: string }>()
  calls = 0

  /** Notes the first time that an event is stored. */
  note({ voucherId, userId, kind, orderId }: OrderEvent): void {
    const list = this.stored.get(`${voucherId} ${userId}`) ?? []
    const text = `${kind} ${orderId}`
    if (!list.includes(text)) list.push(text)
    this.stored.set(`${voucherId} ${userId}`, list)
  }
}

/** The shop as `runSeeds` plays it; `isLossy` where Redis also loses writes. */
export function saleModel(isLossy: boolean): Omit<SeedRuns, 'seeds'> {
  return {
    schedule: (chance) =>
      randomSchedule(chance, isLossy ? lossyFaults : calmFaults, { count: 14, fromMs: isLossy ? 500 : 0, toMs: runMs }),
    async play(world, schedule) {
      const inner = await sqliteOrderStore(':memory:')
      await inner.migrate()
      const network = new VirtualNetwork(world, { delayMs: [0.1, 5] })
      const valkey = new VirtualValkey(world, 'redis').listen(network, 'redis:6379')
      const laws = new Laws()
      const state = { isDown: false }
      const workers = workerNames.map((name) => workerLives(name, world, network, inner, laws, state))
      const player = new FaultPlayer(world, network.faults, valkey.faults, processFaults(workers), {
        storeDown: () => {
          state.isDown = true
          return () => {
            state.isDown = false
          }
        },
      })
      player.play(schedule)
      for (const name of ['shop-1', 'shop-2']) shop(world.process(name), network, laws, isLossy)
      await world.run(runMs + 2000)
      player.undoAll()
      await world.run(40_000)
      await checkEnd(valkey, inner, laws, isLossy)
      await inner.close()
      return { calls: laws.calls, faults: player.injected }
    },
  }
}

function workerLives(
  name: string,
  world: SimulatedWorld,
  network: VirtualNetwork,
  inner: OrderStore,
  laws: Laws,
  state: { readonly isDown: boolean },
): FaultyProcess {
  let life: SimulatedProcess
  const begin = () => {
    life = world.process(name)
    const process = life
    const reach = async () => {
      await process.sleep(process.chance.between(0, 30))
      if (state.isDown) throw new Error('connect ECONNREFUSED')
    }
    const store: OrderStore = {
      ...inner,
      migrate: () => inner.migrate(),
      close: () => inner.close(),
      get: (orderId) => inner.get(orderId),
      async setTotal(voucherId, total) {
        await reach()
        return inner.setTotal(voucherId, total)
      },
      async count(voucherId) {
        await reach()
        return inner.count(voucherId)
      },
      async store(events) {
        await reach()
        const results = await inner.store(events)
        for (const [index, event] of events.entries()) if (results[index]?.kind === 'stored') laws.note(event)
        // The commit stands, and the answer is under way: here a killed worker leaves its entries unsettled.
        await process.sleep(process.chance.between(0, 10))
        return results
      },
    }
    const redis = new SimulatedRedis(process, network, 'redis:6379')
    const worker = new OrderWorker(redis, {
      store,
      name,
      batch: process.chance.pick([1, 3, 20]),
      claimAfterMs: 1500,
      scanMs: 300,
      maxDeliveries: 2,
      runtime: process.runtime,
    })
    process.start(async () => {
      for (;;) {
        try {
          await worker.start()
          return
        } catch {
          await process.sleep(100)
        }
      }
    })
  }
  begin()
  return { name, current: () => life, restart: begin }
}

function shop(app: SimulatedProcess, network: VirtualNetwork, laws: Laws, isLossy: boolean): void {
  const { chance } = app
  const redis = new SimulatedRedis(app, network, 'redis:6379', { resends: chance.next() < 0.5 })
  let ids = 0
  const sale = new Sale(redis, {
    ids: { next: () => `${app.name}-${++ids}` },
    payWithinMs: 1500,
    runtime: app.runtime,
  })
  const orders: { voucherId: string; orderId: string }[] = []
  const act = async () => {
    const { id } = chance.pick(vouchers)
    const userId = chance.pick(users)
    const draw = chance.next()
    const order = orders.length === 0 ? undefined : chance.pick(orders)
    laws.calls++
    if (draw < 0.55 || order === undefined) {
      const result = await sale.purchase(id, userId)
      if (result.code === 'sold') {
        laws.told.set(result.orderId, { voucherId: id, userId })
        orders.push({ voucherId: id, orderId: result.orderId })
      }
      if (result.code !== 'bought') return
      for (const orderId of result.orderIds) {
        const known = laws.told.get(orderId)
        if (known !== undefined && known.userId !== userId)
          throw new LawBroken(`${userId} is told order ${orderId} of ${known.userId}`)
        orders.push({ voucherId: id, orderId })
      }
      return
    }
    if (draw < 0.75) await sale.cancel(order.voucherId, order.orderId)
    else if (draw < 0.88) await sale.pay(order.voucherId, order.orderId)
    else if (draw < 0.97 || isLossy)
      await sale.refund(order.voucherId, order.orderId, { toStock: isLossy || chance.next() < 0.5 })
    else await sale.restock(id, chance.pick([1, 1, -1]))
  }
  app.start(async () => {
    for (const voucher of vouchers) {
      const now = Math.floor(app.world.nowMs / 1000)
      await retried(app, () => sale.open({ ...voucher, begin: now - 1000, end: now + 100_000 }))
    }
    while (app.world.elapsedMs < runMs) {
      await act().catch((error: Error) => {
        // A lost connection is the fault's; what the sale itself says is not.
        if (error instanceof LawBroken || 'code' in error) throw error
      })
      await app.sleep(chance.between(1, 60))
    }
  })
}

class LawBroken extends Error {}

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

async function checkEnd(valkey: VirtualValkey, store: OrderStore, laws: Laws, isLossy: boolean): Promise<void> {
  for (const { id, stock, perUser } of vouchers) {
    const keys = saleKeys(id)
    const entries = entriesOf(valkey.ask('XRANGE', keys.orders, '-', '+')).map((entry) => fieldsOf(entry))
    const dead = entriesOf(valkey.ask('XRANGE', keys.dead, '-', '+')).map((entry) => fieldsOf(entry))
    const pending = entries.length === 0 ? 0 : Number((valkey.ask('XPENDING', keys.orders, 'orders') as unknown[])[0])
    if (pending !== 0) throw new Error(`${pending} entries of ${id} are still pending`)
    if (!isLossy && dead.length > 0)
      throw new Error(`a sold order of ${id} is a dead letter: ${[...dead[0]!].flat().join(' ')}`)
    checkNumbers(id, entries)
    const live = await store.count(id)
    const total = isLossy ? stock : Number(valkey.ask('HGET', keys.voucher, 'total'))
    if (live > total) throw new Error(`${id} has ${live} live rows, and a total of ${total}`)
    const deadOrders = new Set(dead.map((fields) => fields.get('order')))
    const heldBy = new Map<string, number>()
    for (const orderId of new Set(entries.map((fields) => fields.get('order')!))) {
      const redisState = String(valkey.ask('HGET', keys.states, orderId)).split('|')[0]
      const row = await store.get(orderId)
      // Where Redis lost what the store has, the store is ahead of it.
      const isRight = isLossy ? row !== undefined : row?.state === redisState
      if (!isRight && !deadOrders.has(orderId))
        throw new Error(`order ${orderId} is ${redisState} in Redis and ${row?.state} in the store`)
      if (row?.state === 'placed' || row?.state === 'paid') heldBy.set(row.userId, (heldBy.get(row.userId) ?? 0) + 1)
    }
    for (const [userId, held] of heldBy) if (held > perUser) throw new Error(`${userId} holds ${held} of ${id}`)
    if (isLossy) continue
    if (live !== Number(valkey.ask('HGET', keys.voucher, 'sold')))
      throw new Error(`${id} has ${live} rows, not what was sold`)
    checkOrder(id, entries, laws)
  }
  if (isLossy) return
  for (const orderId of laws.told.keys())
    if ((await store.get(orderId)) === undefined)
      throw new Error(`order ${orderId} was told as sold, and is not stored`)
}

function checkNumbers(id: string, entries: readonly Map<string, string>[]): void {
  const seen = new Set<string>()
  for (const fields of entries) {
    if (fields.get('kind') !== 'placed') continue
    const number = `${fields.get('user')}|${fields.get('number')}`
    if (seen.has(number)) throw new Error(`number ${number} of ${id} was given twice`)
    seen.add(number)
  }
}

/** The events of each user were first stored in the order of the stream. */
function checkOrder(id: string, entries: readonly Map<string, string>[], laws: Laws): void {
  const byUser = new Map<string, string[]>()
  for (const fields of entries) {
    const list = byUser.get(fields.get('user')!) ?? []
    list.push(`${fields.get('kind')} ${fields.get('order')}`)
    byUser.set(fields.get('user')!, list)
  }
  for (const [userId, wanted] of byUser) {
    const stored = laws.stored.get(`${id} ${userId}`) ?? []
    if (stored.join() !== wanted.join())
      throw new Error(`events of ${userId} were stored as ${stored.join()} and happened as ${wanted.join()}`)
  }
}
