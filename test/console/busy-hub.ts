import { protect, unprotect } from '@firebreak/client'
import { pageFolder } from '@firebreak/console'
import { type Hub, type HubServices, openHubServices, startHub } from '@firebreak/hub'
import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { type Shop, saleDesk, startShop } from './busy-shop.ts'

/** A hub with several services, two clusters and some thirty keys in use, for the tests and the pictures of the console. */
export interface BusyHub {
  readonly hub: Hub
  readonly server: RedisServer
  readonly shop: Shop
  api<T>(method: string, path: string, body?: unknown): Promise<T>
  /** Reads one key as often as this, from now on; the burst of an incident. */
  burst(key: string, perSecond: number): void
  close(): Promise<void>
}

/** Low, so that keys are hot on a busy machine too, where the load comes slowly. */
const rules = [
  { id: 'product', prefix: 'product', threshold: 15, windowMs: 1000, strategy: 'LocalCache' },
  {
    id: 'feed',
    prefix: 'feed:',
    levels: [
      { threshold: 10, strategy: 'Observe' },
      { threshold: 5000, strategies: ['LocalCache', 'RedundantKeys'] },
    ],
  },
  { id: 'cart', prefix: 'cart:', threshold: 10, strategy: { strategy: 'RateLimit', limit: 20, onLimit: 'stale' } },
  { id: 'session', prefix: 'session:', threshold: 8, mode: 'shadow', strategy: 'LocalCache' },
] as const

const services = [
  { serviceId: 'shop', redisClusterId: 'main', prefixes: ['product:', 'cart:'] },
  { serviceId: 'search', redisClusterId: 'main', prefixes: ['product:', 'feed:'] },
  { serviceId: 'accounts', redisClusterId: 'eu', prefixes: ['session:', 'product:'] },
] as const

const tickMs = 25
export const longKey = `session:${'x'.repeat(384)}:tail-of-it`

export async function startBusyHub(): Promise<BusyHub> {
  const server = await startRedis()
  const board = new Redis(server.port)
  const own: HubServices = await openHubServices({ workerId: 7, sale: saleDesk(board) })
  const hub = await startHub({
    initialRules: rules,
    consoleFolder: pageFolder,
    logLevel: 'fatal',
    plugins: own.plugins,
    watchers: [{ kind: 'replica', name: 'stream', redisClusterId: 'main', address: server }],
    engines: [`main=${server.url}`],
  })
  const clients = services.map(({ serviceId, redisClusterId }) =>
    protect(new Redis(server.port), {
      hubs: [hub.url],
      serviceId,
      redisClusterId,
      tableFile: false,
      canaryMs: 500,
      showsValues: serviceId !== 'accounts',
    }),
  )
  const bursts = new Map<string, number>()
  const odd = [Buffer.from([0xff, 0x00, 0x80]), ' ', longKey]
  let turn = 0
  const ignore = () => {}
  const load = setInterval(() => {
    turn++
    for (const [at, { prefixes }] of services.entries()) {
      const redis = clients[at]!
      // The first key of a prefix takes most: rank r is read every r-th turn, twice at that.
      for (const prefix of prefixes) {
        for (let rank = 1; rank <= 6; rank++) {
          if (turn % rank === 0) for (let read = 0; read < 3; read++) redis.get(`${prefix}${100 + rank}`).catch(ignore)
        }
        if (turn % 8 === 0) redis.set(`${prefix}101`, `value ${turn}`).catch(ignore)
      }
    }
    for (const key of odd) clients[2]!.get(key).catch(ignore)
    for (const [key, perSecond] of bursts) {
      for (let read = 0; read < (perSecond * tickMs) / 1000; read++) clients[0]!.get(key).catch(ignore)
    }
  }, tickMs)
  const api = async <T>(method: string, path: string, body?: unknown): Promise<T> => {
    const isText = typeof body === 'string'
    const answer = await fetch(`${hub.url}${path}`, {
      method,
      ...(body !== undefined && {
        body: isText ? body : JSON.stringify(body),
        headers: { 'content-type': isText ? 'text/plain' : 'application/json' },
      }),
    })
    const text = await answer.text()
    if (!answer.ok) throw new Error(`${method} ${path}: ${answer.status} ${text}`)
    return (text === '' ? undefined : JSON.parse(text)) as T
  }
  const shop = await startShop(server, hub.url)
  return {
    hub,
    server,
    shop,
    api,
    burst: (key, perSecond) => void bursts.set(key, perSecond),
    async close() {
      clearInterval(load)
      await shop.close()
      for (const redis of clients) {
        unprotect(redis)
        redis.disconnect()
      }
      await hub.close()
      await own.close()
      board.disconnect()
      await server.stop()
    },
  }
}

export const policy =
  '[rules]\nrule : [count] [uid=+] [time=5;count=3] [result=1;return=403]\nrule : [count] [ip=+] [time=60;count=100] [result=1;return=429]\n[result]\n1 : {"Ret_type":1,"Ret_code":403}\n'

/** What a search for big keys tells. */
export function bigKeys(): object {
  const child = (prefix: string, keys: number, bytes: number) => ({
    prefix,
    keys,
    bytes,
    elements: keys * 3,
    children: [],
  })
  return {
    version: 1,
    id: '7d4c1b1e-3a52-4a39-9d3f-0c7a54a7a001',
    kind: 'big',
    method: 'scan',
    startedAtMs: Date.now() - 60_000,
    tookMs: 5200,
    source: ['127.0.0.1:6379'],
    topology: 'standalone',
    isComplete: true,
    scanned: 48_210,
    keys: [
      { key: 'feed:home', type: 'list', bytes: 18_400_000, elements: 240_000 },
      { key: 'user:all', type: 'hash', bytes: 9_120_000, elements: 81_000 },
      { key: 'rank:today', type: 'zset', bytes: 4_400_000, elements: 52_000 },
      { key: 'page:front', type: 'string', bytes: 2_100_000 },
      { key: 'events', type: 'stream', bytes: 1_900_000, elements: 30_000 },
    ],
    prefixes: {
      prefix: '',
      keys: 48_210,
      bytes: 64_000_000,
      elements: 900_000,
      children: [
        child('feed:', 900, 28_000_000),
        child('user:', 21_000, 16_000_000),
        child('product:', 18_000, 9_000_000),
        child('rank:', 40, 5_000_000),
        child('session:', 8000, 3_000_000),
        child('cart:', 270, 1_000_000),
      ],
    },
    notes: [],
  }
}
