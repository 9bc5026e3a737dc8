import type { CombineStrategy } from '@firebreak/core'
import { keySlot } from '@firebreak/core/commands'
import type { FirebreakProxy } from '@firebreak/proxy'
import { moveSlot, type RedisServer, startCluster, startRedis, waitFor } from '@firebreak/testkit'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { type CounterOperation, isLinearizable } from '../correct/counter-history.ts'
import { aloneIn, sequences } from './combine-sequences.ts'
import { RawClient } from './raw-client.ts'
import { ShieldedProxies } from './shielded-proxies.ts'

let proxies: ShieldedProxies
let server: RedisServer
let proxy: FirebreakProxy
let direct: RawClient

beforeEach(async () => {
  proxies = await ShieldedProxies.open()
  server = await startRedis()
  proxies.onClose(() => server.stop())
  proxy = await proxies.start(server.url)
  direct = await RawClient.connect(server.port)
  proxies.onClose(() => direct.close())
})

afterEach(() => proxies.close())

const strategy: CombineStrategy = { strategy: 'Combine', maxCombined: 1024 }

/** Clients that add nothing to a counter, again and again: whoever else increments it is combined with them. */
class Crowd {
  #isOver = false
  readonly #clients: RawClient[] = []
  readonly #loops: Promise<void>[] = []

  static async start(at: Pick<FirebreakProxy, 'port'>, words: readonly string[], count = 8): Promise<Crowd> {
    const crowd = new Crowd()
    for (let index = 0; index < count; index++) {
      const client = await RawClient.connect(at.port)
      crowd.#clients.push(client)
      crowd.#loops.push(crowd.#loop(client, words))
    }
    proxies.onClose(() => crowd.stop())
    return crowd
  }

  async #loop(client: RawClient, words: readonly string[]): Promise<void> {
    while (!this.#isOver && !client.isClosed) await client.ask(...words)
  }

  async stop(): Promise<void> {
    this.#isOver = true
    await Promise.all(this.#loops)
    await Promise.all(this.#clients.map((client) => client.close()))
  }
}

/** How often Redis was asked for a command. */
async function calls(name: string, of: RawClient = direct): Promise<number> {
  const info = await of.ask('INFO', 'commandstats')
  return Number(new RegExp(`cmdstat_${name}:calls=(\\d+)`).exec(info)?.[1] ?? 0)
}

/** Waits until increments of a key go out together. */
async function areCombined(): Promise<void> {
  await waitFor(async () => Number(/firebreak_combined:(\d+)/.exec(await proxyInfo())?.[1] ?? 0) > 0, {
    what: 'increments to be combined',
  })
}

async function proxyInfo(): Promise<string> {
  const client = await RawClient.connect(proxy.port)
  const info = await client.ask('INFO', 'firebreak')
  await client.close()
  return info
}

test('many increments become few commands, and each client gets its own value', async () => {
  proxies.hub.heat('main', ['n'], { strategy })
  const crowd = await Crowd.start(proxy, ['INCRBY', 'n', '0'])
  await areCombined()
  await crowd.stop()
  const clients = await Promise.all(Array.from({ length: 64 }, () => proxies.connect(proxy)))
  const before = (await calls('incr')) + (await calls('incrby'))
  const values = new Set<string>()
  for (let round = 0; round < 20; round++) {
    for (const value of await Promise.all(clients.map((client) => client.ask('INCR', 'n')))) values.add(value)
  }
  expect(values.size).toBe(64 * 20)
  expect(await direct.ask('GET', 'n')).toBe('$4\r\n1280\r\n')
  const sent = (await calls('incr')) + (await calls('incrby')) - before
  expect(sent).toBeLessThan(640)
})

test.each(['2', '3'])(
  'a client gets what it gets from Redis itself, in RESP%s, whoever else is there',
  async (version) => {
    proxies.hub.heat('main', ['k', 'other'], { strategy })
    const bare = await startRedis()
    proxies.onClose(() => bare.stop())
    const judge = await RawClient.connect(bare.port)
    proxies.onClose(() => judge.close())
    const first = await Crowd.start(proxy, ['INCRBY', 'k', '0'])
    await areCombined()
    await first.stop()
    const client = await proxies.connect(proxy)
    for (const asked of [client, judge]) await asked.ask('HELLO', version)
    for (const [name, pipelines] of Object.entries(sequences)) {
      for (const asked of [client, judge]) await asked.ask('SET', 'k', '0')
      const others = name === 'fields of a hash' ? ['HINCRBY', 'k', 'f', '0'] : ['INCRBY', 'k', '0']
      const crowd = aloneIn.includes(name) ? undefined : await Crowd.start(proxy, others)
      for (const pipeline of pipelines) {
        const replies: string[][] = []
        for (const asked of [client, judge]) {
          for (const words of pipeline) asked.send(...words)
          const all: string[] = []
          for (const _ of pipeline) all.push(await asked.next())
          replies.push(all)
        }
        expect([name, replies[0]]).toEqual([name, replies[1]])
      }
      await crowd?.stop()
    }
  },
  60_000,
)

test('the errors of a sum belong to those whose part it is', async () => {
  proxies.hub.heat('main', ['n'], { strategy })
  const crowd = await Crowd.start(proxy, ['INCRBY', 'n', '0'])
  await areCombined()
  // Somebody else moves it to where only some of the next increments have room.
  const clients = await Promise.all(Array.from({ length: 10 }, () => proxies.connect(proxy)))
  await direct.ask('SET', 'n', '9223372036854775802')
  const replies = await Promise.all(clients.map((client) => client.ask('INCR', 'n')))
  await crowd.stop()
  const full = '-ERR increment or decrement would overflow\r\n'
  const values = replies.filter((reply) => reply !== full).sort()
  expect(values).toEqual([3, 4, 5, 6, 7].map((digit) => `:922337203685477580${digit}\r\n`))
  await direct.ask('SET', 'n', 'no number')
  const refused = await Promise.all(clients.map((client) => client.ask('INCR', 'n')))
  expect(new Set(refused)).toEqual(new Set(['-ERR value is not an integer or out of range\r\n']))
})

test('users with other rights are not combined with each other, nor beyond their own', async () => {
  await direct.ask('ACL', 'SETUSER', 'ups', 'on', '>up', '~*', '+incr', '+incrby', '+get')
  await direct.ask('ACL', 'SETUSER', 'sums', 'on', '>sum', '~*', '+incrby', '+get')
  await direct.ask('ACL', 'SETUSER', 'ones', 'on', '>one', '~*', '+incr', '+get')
  proxies.hub.heat('main', ['n'], { strategy })
  const crowd = await Crowd.start(proxy, ['INCRBY', 'n', '0'])
  await areCombined()
  const as = async (name: string, password: string) => {
    const clients = await Promise.all(Array.from({ length: 6 }, () => proxies.connect(proxy)))
    for (const client of clients) expect(await client.ask('AUTH', name, password)).toBe('+OK\r\n')
    return clients
  }
  const [ups, sums, ones] = [await as('ups', 'up'), await as('sums', 'sum'), await as('ones', 'one')]
  const refused = /^-NOPERM/
  for (let round = 0; round < 10; round++) {
    const up = await Promise.all(ups.map((client, index) => client.ask(index % 2 === 0 ? 'INCR' : 'DECR', 'n')))
    expect(up.map((reply) => refused.test(reply))).toEqual([false, true, false, true, false, true])
    const sum = await Promise.all(
      sums.map((client, index) => (index % 2 === 0 ? client.ask('INCRBY', 'n', '2') : client.ask('INCR', 'n'))),
    )
    expect(sum.map((reply) => refused.test(reply))).toEqual([false, true, false, true, false, true])
    const one = await Promise.all(ones.map((client) => client.ask('INCR', 'n')))
    expect(one.map((reply) => refused.test(reply))).toEqual(one.map(() => false))
  }
  await crowd.stop()
  expect(await direct.ask('GET', 'n')).toBe(`$3\r\n${10 * (3 + 6 + 6)}\r\n`)
}, 30_000)

/** Numbers that look like chance and are the same in every run. */
function randomOf(seed: number): (below: number) => number {
  let state = seed
  return (below) => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0
    return (state >>> 8) % below
  }
}

/** One client that does what chance says, and notes what it was told. */
async function writer(
  port: number,
  random: (below: number) => number,
  isRising: boolean,
  history: CounterOperation[],
): Promise<void> {
  const client = await RawClient.connect(port)
  for (let round = 0; round < (isRising ? 80 : 40) && !client.isClosed; round++) {
    const amount = isRising ? random(4) : random(9) - 4
    const increments: readonly { words: readonly string[]; amount: number }[] = [
      { words: ['INCR', 'n'], amount: 1 },
      { words: ['INCRBY', 'n', String(amount)], amount },
      { words: ['DECRBY', 'n', String(amount === 0 ? 0 : -amount)], amount },
      { words: ['DECR', 'n'], amount: -1 },
    ]
    const increment = increments[random(isRising ? 3 : 4)]!
    const how = random(6)
    const pipeline = how > 0 ? [increment] : []
    if (how < 3) pipeline.push({ words: ['GET', 'n'], amount: 0 })
    if (how === 2) pipeline.push(increment)
    const began = performance.now()
    for (const { words } of pipeline) client.send(...words)
    let after: CounterOperation | undefined
    for (const sent of pipeline) {
      const reply = await client.next()
      const value = /^[:$]/.test(reply) ? Number(/(-?\d+)\r\n$/.exec(reply)![1]) : undefined
      after = { amount: sent.amount, began, ended: value === undefined ? undefined : performance.now(), value, after }
      history.push(after)
    }
  }
  await client.close()
}

/** Sixteen clients of the proxy, and two that go past it; `meanwhile` runs beside them. */
async function historyOf(
  seed: number,
  isRising: boolean,
  meanwhile: (history: readonly CounterOperation[], isOver: () => boolean) => Promise<void>,
): Promise<CounterOperation[]> {
  proxies.hub.heat('main', ['n'], { strategy: { ...strategy, maxCombined: 7 } })
  const crowd = await Crowd.start(proxy, ['INCRBY', 'n', '0'])
  await areCombined()
  await crowd.stop()
  await direct.ask('SET', 'n', '0')
  const history: CounterOperation[] = []
  let isOver = false
  const beside = meanwhile(history, () => isOver)
  const ports = [server.port, server.port, ...Array.from({ length: 16 }, () => proxy.port)]
  await Promise.all(ports.map((port, index) => writer(port, randomOf(seed * 100 + index), isRising, history)))
  isOver = true
  await beside
  const began = performance.now()
  const value = Number(/\r\n(-?\d+)/.exec(await direct.ask('GET', 'n'))![1])
  return [...history, { amount: 0, began, ended: performance.now(), value }]
}

test.each([1, 2])('a history of ups, downs and reads is linearizable (seed %i)', async (seed) => {
  const history = await historyOf(seed, false, async () => {})
  expect(history.every(({ ended }) => ended !== undefined)).toBe(true)
  expect(isLinearizable(history)).toBe(true)
})

test.each([3, 4, 5])('a history with connections killed is linearizable (seed %i)', async (seed) => {
  const history = await historyOf(seed, true, async (soFar, isOver) => {
    for (let kills = 0; !isOver() && kills < 10; kills++) {
      const before = soFar.length
      await waitFor(() => isOver() || soFar.length >= before + 120, { what: 'more operations', timeoutMs: 30_000 })
      await direct.ask('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')
    }
  })
  expect(history.some(({ ended }) => ended === undefined)).toBe(true)
  expect(isLinearizable(history)).toBe(true)
})

test('over a cluster too, while the slot of the counter moves', async () => {
  const cluster = await startCluster()
  proxies.onClose(() => cluster.stop())
  const upstream = cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(',')
  proxy = await proxies.start(upstream)
  proxies.hub.heat('main', ['n'], { strategy })
  const crowd = await Crowd.start(proxy, ['INCRBY', 'n', '0'])
  await areCombined()
  await crowd.stop()
  const clients = await Promise.all(Array.from({ length: 24 }, () => proxies.connect(proxy)))
  const values = new Set<string>()
  const slot = keySlot('n')
  // Whoever has it, and then the others in turn.
  const owner = Math.floor(slot / 5461)
  const masters = [0, 1, 2].map((index) => cluster.nodes[(owner + index) % 3]!)
  for (let round = 0; round < 60; round++) {
    const replies = Promise.all(clients.map((client) => client.ask('INCR', 'n')))
    if (round % 20 === 10) {
      const from = Math.floor(round / 20)
      await moveSlot(cluster, slot, masters[from % 3]!, masters[(from + 1) % 3]!)
    }
    for (const reply of await replies) values.add(reply)
  }
  expect(values.size).toBe(24 * 60)
  expect(await clients[0]!.ask('GET', 'n')).toBe('$4\r\n1440\r\n')
}, 60_000)
