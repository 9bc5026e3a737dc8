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
import { OrderStoreError } from '../errors.ts'
import { OrderWorker } from '../orders/order-worker.ts'
import { chosenOrderKey, saleKeys } from '../sale-keys.ts'
import type { OrderStore } from '../store/order-store.ts'
import { sqliteOrderStore } from '../store/sqlite.ts'
import { forgotten, goods, LawBroken, ShopLaws, scribbled } from './shop-laws.ts'
import { clerk, person, type Street, shop, twin } from './shop-people.ts'

// A shop in a simulation: buyers who buy, pay, cancel and ask for their money back, some with order ids of their own; two
// processes that were given one worker id; a clerk who fills up; a person who looks at dead letters; three workers that
// are killed and frozen, a store that goes down, hangs and is slow, a Redis that is cut off, killed, and (in the second
// model) loses writes.
//
// Laws, always: no more live rows than the total, none of a user beyond what he may hold, no order number of a user
// twice, the events of a user stored in the order of the stream, a buyer who "has bought" is told his own orders, also
// when all is sold; an order id is one order; what makes no sense is refused; an outage is told
// once, and its end when the store has answered.
// In the end: nothing is pending, nothing unpaid is left, stored entries are trimmed, every order of the stream has the
// same state in the store as in Redis, what was filled up counts once, whoever was told "sold" has a row or a dead letter
// that somebody has seen; without lost writes only order ids that were forgotten and used twice are dead letters.
//
// `npm run simulate -- --mutants --model sale` (and `sale-lossy`) takes each mend out and says which seed finds it.

/** What `npm test` plays. */
export function quickSeeds(isLossy: boolean): readonly number[] {
  return Array.from({ length: isLossy ? 16 : 10 }, (_, index) => (isLossy ? 101 : 1) + index)
}

const workerNames = ['worker-1', 'worker-2', 'worker-3']
const runMs = 8000

const calmFaults: FaultChoice[] = [
  { kind: 'kill', targets: workerNames, forMs: [10, 2000], weight: 3 },
  { kind: 'freeze', targets: workerNames, forMs: [50, 3000], weight: 3 },
  { kind: 'storeRefuses', targets: ['store'], forMs: [100, 4000] },
  { kind: 'storeSaysSo', targets: ['store'], forMs: [100, 4000] },
  { kind: 'storeHangs', targets: ['store'], forMs: [100, 4000] },
  { kind: 'cut', targets: [...workerNames, 'shop-1', 'clerk', 'clerk', 'redis'], weight: 3 },
  { kind: 'freeze', targets: ['redis'], forMs: [10, 1500] },
  { kind: 'kill', targets: ['redis'], forMs: [10, 1000] },
]
const lossyFaults: FaultChoice[] = [
  ...calmFaults,
  { kind: 'loseWrites', targets: ['redis'], amount: [20, 600], weight: 4 },
  { kind: 'loseGroup', targets: goods.map(({ id }) => id) },
]

/** How the store fails while it is down. */
type Outage = 'refuses' | 'says so' | 'hangs' | undefined

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
      const laws = new ShopLaws(valkey, isLossy)
      const street: Street = { network, laws, isLossy, runMs }
      writeByHand(world, valkey)
      const state: { outage: Outage } = { outage: undefined }
      const workers = workerNames.map((name) => workerLives(name, world, street, inner, state))
      const player = new FaultPlayer(world, network.faults, valkey.faults, processFaults(workers), {
        loseGroup: ({ target }) => loseGroup(valkey, target),
        storeRefuses: () => storeFails(state, 'refuses'),
        storeSaysSo: () => storeFails(state, 'says so'),
        storeHangs: () => storeFails(state, 'hangs'),
      })
      player.play(schedule)
      for (const name of ['shop-1', 'shop-2']) shop(world.process(name), street)
      twin(world.process('twin-1'), 0, street)
      twin(world.process('twin-2'), 1, street)
      clerk(world.process('clerk'), street)
      person(world.process('person'), street)
      const readStreams = (): void => {
        laws.readStreams()
        if (valkey.isRunning) valkey.ask('DEL', ...forgotten.map(chosenOrderKey))
        if (world.elapsedMs < runMs + 10_000) world.schedule(300, readStreams)
      }
      readStreams()
      await world.run(runMs + 2000)
      player.undoAll()
      // When no worker begins any more that would make it again by the way.
      if (isLossy) loseGroup(valkey, goods[0]!.id)
      await world.run(25_000)
      await laws.checkEnd(inner)
      await inner.close()
      return { calls: laws.calls, faults: player.injected }
    },
  }
}

/** How it fails first lasts: another outage meanwhile changes nothing. */
function storeFails(state: { outage: Outage }, how: Outage): (() => void) | undefined {
  if (state.outage !== undefined) return undefined
  state.outage = how
  return () => {
    state.outage = undefined
  }
}

/** Redis is as it was before anybody read this stream. */
function loseGroup(valkey: VirtualValkey, voucherId: string): undefined {
  const { orders } = saleKeys(voucherId)
  if (valkey.isRunning && Number(valkey.ask('EXISTS', orders)) === 1) valkey.ask('XGROUP', 'DESTROY', orders, 'orders')
}

/** A hash as the tutorials write it, and one that nothing can be sold by. Nodes of streams are small, to be trimmed soon. */
function writeByHand(world: SimulatedWorld, valkey: VirtualValkey): void {
  const now = Math.floor(world.nowMs / 1000)
  const hours = ['begin', String(now - 1000), 'end', String(now + 100_000)]
  for (const { id, stock, isByHand } of goods)
    if (isByHand) valkey.ask('HSET', saleKeys(id).voucher, ...hours, 'stock', String(stock))
  valkey.ask('HSET', saleKeys(scribbled).voucher, ...hours, 'stock', '5.0', 'sold', '0')
  valkey.ask('CONFIG', 'SET', 'stream-node-max-entries', '5')
}

function workerLives(
  name: string,
  world: SimulatedWorld,
  { network, laws, isLossy }: Street,
  inner: OrderStore,
  state: { readonly outage: Outage },
): FaultyProcess {
  let life: SimulatedProcess
  let lives = 0
  const begin = () => {
    life = world.process(name)
    const process = life
    // What a worker left whose name never comes again is for the others.
    if (process.chance.next() < 0.5) lives++
    const redis = new SimulatedRedis(process, network, 'redis:6379')
    const told = new ToldOutages(process)
    const worker = new OrderWorker(redis, {
      store: storeOf(process, inner, laws, state, told),
      name: `${name}-${lives}`,
      batch: process.chance.pick([1, 3, 20]),
      claimAfterMs: 1500,
      scanMs: 300,
      maxDeliveries: 2,
      maxDeadLetters: 3,
      keepStoredMs: isLossy ? Number.POSITIVE_INFINITY : 1500,
      storeTimeoutMs: 500,
      onError: (error) => told.failed(error),
      onRecovery: () => told.recovered(),
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

/** What a worker says of its store: an outage once, and that it is over only when the store has answered. */
class ToldOutages {
  readonly #process: SimulatedProcess
  #isDown = false
  hasAnswered = true

  constructor(process: SimulatedProcess) {
    this.#process = process
  }

  failed(error: Error): void {
    if (!(error instanceof OrderStoreError) || !error.isOutage) return
    if (this.#isDown) this.#break('tells of one outage twice')
    this.#isDown = true
  }

  recovered(): void {
    if (!this.hasAnswered) this.#break('says that its store is back, which has not answered')
    this.#isDown = false
  }

  /** What a listener throws would be told to nobody. */
  #break(what: string): void {
    this.#process.world.fail(new LawBroken(`${this.#process.name} ${what}`))
  }
}

/** The one store, as a worker's process reaches it: slow, and at times not at all. */
function storeOf(
  process: SimulatedProcess,
  inner: OrderStore,
  laws: ShopLaws,
  state: { readonly outage: Outage },
  told: ToldOutages,
): OrderStore {
  const reach = async () => {
    await process.sleep(process.chance.between(0, 30))
    told.hasAnswered = state.outage === undefined
    if (state.outage === 'refuses') throw new Error('connect ECONNREFUSED')
    if (state.outage === 'says so') throw new OrderStoreError('FB_SALE_STORE_DOWN', 'the order store is down')
    if (state.outage === 'hangs') await new Promise(() => {})
  }
  return {
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
      try {
        for (const [index, event] of events.entries()) if (results[index]?.kind === 'stored') laws.stored(event)
        for (const voucherId of new Set(events.map((event) => event.voucherId)))
          laws.counted(voucherId, await inner.count(voucherId))
      } catch (error) {
        // To the worker this would be a store that is down.
        process.world.fail(error)
      }
      // The commit stands, and the answer is under way: here a killed worker leaves its entries unsettled.
      await process.sleep(process.chance.between(0, 10))
      return results
    },
  }
}
