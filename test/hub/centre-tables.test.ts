import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { type ConfigCentre, openCentre } from '@firebreak/centre'
import { type ProtectOptions, peek, protect, shieldOf, unprotect } from '@firebreak/client'
import { encodeBinaryReport, type PublishedTable } from '@firebreak/core'
import { type HubOptions, startHub } from '@firebreak/hub'
import {
  freePort,
  type RedisServer,
  sourceArgs,
  startChild,
  startEtcd,
  startRedis,
  startZooKeeper,
  waitFor,
} from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'

vi.setConfig({ testTimeout: 120_000, hookTimeout: 60_000 })

type Hub = Awaited<ReturnType<typeof startHub>>

const command = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
const run = promisify(execFile)
const ends: (() => unknown)[] = []
let redis: RedisServer
beforeEach(async () => {
  redis = await startRedis()
  ends.push(() => redis.stop())
})
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

interface RunningCentre {
  readonly url: string
  readonly address: string
  stop(): Promise<unknown>
  restart(): Promise<unknown>
}

const centres: Record<string, () => Promise<RunningCentre>> = {
  async etcd() {
    let server = await startEtcd()
    ends.push(() => server.stop())
    const restart = async () => {
      server = await server.restart()
    }
    const address = `127.0.0.1:${server.port}`
    return { url: `etcd://${address}`, address, stop: () => server.stop(), restart }
  },
  async zookeeper() {
    let server = await startZooKeeper()
    ends.push(() => server.stop())
    const restart = async () => {
      server = await server.restart()
    }
    return { url: `zookeeper://${server.address}`, address: server.address, stop: () => server.stop(), restart }
  },
}

const rule = { id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000, minHoldMs: 600_000 }

async function openHub(options: HubOptions): Promise<Hub> {
  const hub = await startHub({ initialRules: [rule], logLevel: 'silent', ...options })
  ends.push(() => hub.close())
  return hub
}

let sequence = 0

/** Somebody of the service reads a key a thousand times. */
function heat(hub: Hub, key: string): void {
  const now = Math.floor(hub.core.now())
  const sections = [{ redisClusterId: 'main', entries: [{ key, count: 1000, writes: 0, bytes: 0 }] }]
  const ids = { serviceId: 'shop', hostId: 'h', instanceId: 'other' }
  hub.core.collector.collectBinary(encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections }), 0, ++sequence)
}

/** A client of the service `shop`, as an application has it. */
function openClient(options: ProtectOptions): Redis {
  const client = new Redis(redis.port, { lazyConnect: false })
  protect(client, {
    serviceId: 'shop',
    redisClusterId: 'main',
    instanceId: 'me',
    tableFile: false,
    onWarning() {},
    ...options,
  })
  ends.push(() => {
    unprotect(client)
    client.disconnect()
  })
  return client
}

/** True where the key is answered from the process' own memory. */
async function isHandled(client: Redis, key: string): Promise<boolean> {
  await client.get(key)
  return peek(client, key) !== undefined
}

function openWriter(url: string): ConfigCentre {
  const centre = openCentre(url)
  ends.push(() => centre.close())
  return centre
}

/** A table as somebody else may write it. */
function tableOf(version: number, keys: readonly string[], more: Partial<PublishedTable> = {}): string {
  const cache = { cacheSize: 100, maxBytes: 1_000_000, expireTime: 60, expireStrategy: 'LRU', consistent: true }
  const clusters = { main: [{ strategy: 'LocalCache', ...cache, ruleId: 'hot', keys }] }
  const writtenAt = Date.now()
  const times = { writtenAt, validUntil: writtenAt + 60_000 }
  return JSON.stringify({ epoch: 'e', version, isOff: false, ...times, clusters, rules: [], ...more })
}

describe.each(Object.keys(centres))('%s', (kind) => {
  test('a process without a hub handles what hubs publish, through restarts of either side and by the kill switch', async () => {
    const centre = await centres[kind]!()
    const port = await freePort()
    let hub = await openHub({ publishTo: centre.url, port })
    const client = openClient({ hubs: [], tables: centre.url })
    heat(hub, 'hot-1')
    await waitFor(() => isHandled(client, 'hot-1'))
    expect(await isHandled(client, 'cold')).toBe(false)
    expect(shieldOf(client)).toMatchObject({ isByCentre: true, isConnected: false })

    await centre.stop()
    await centre.restart()
    heat(hub, 'hot-2')
    await waitFor(() => isHandled(client, 'hot-2'), { timeoutMs: 60_000 })
    expect(await isHandled(client, 'hot-1')).toBe(true)

    await hub.close()
    hub = await openHub({ publishTo: centre.url, port })
    heat(hub, 'hot-3')
    await waitFor(() => isHandled(client, 'hot-3'))

    hub.core.delivery.setOff(true)
    hub.core.delivery.flush()
    await waitFor(async () => shieldOf(client)!.isOff && !(await isHandled(client, 'hot-3')))
    hub.core.delivery.setOff(false)
    hub.core.delivery.flush()
    await waitFor(() => isHandled(client, 'hot-3'))
  })

  test('no older version, nothing beyond validUntil, and nothing that is for another process', async () => {
    const { url } = await centres[kind]!()
    const writer = openWriter(url)
    const write = (text: string) => writer.write('/firebreak/tables/shop', text)
    const client = openClient({ hubs: [], tables: url })
    const shield = shieldOf(client)!
    await write(tableOf(7, ['a']))
    await waitFor(() => isHandled(client, 'a'))

    await write(tableOf(6, ['b']))
    await write('no table')
    await write(tableOf(8, ['a', 'c'], { validUntil: Date.now() - 1 }))
    // A later one is the sign that the three before it were seen.
    const { clusters } = JSON.parse(tableOf(9, ['mine'])) as PublishedTable
    const { clusters: others } = JSON.parse(tableOf(9, ['theirs'])) as PublishedTable
    const validUntil = Date.now() + 3000
    await write(tableOf(9, ['d'], { only: { me: clusters, other: others }, validUntil }))
    await waitFor(() => isHandled(client, 'mine'))
    expect(shield.tableVersion).toEqual({ epoch: 'e', version: 9 })
    for (const key of ['a', 'b', 'c', 'theirs']) expect(await isHandled(client, key), key).toBe(false)
    expect(await isHandled(client, 'd')).toBe(true)
    await waitFor(async () => !(await isHandled(client, 'd')) && !(await isHandled(client, 'mine')))
    expect(Date.now()).toBeGreaterThanOrEqual(validUntil)

    // A hub whose store was reset starts a new epoch: it is believed although its version is lower.
    await write(tableOf(1, ['e'], { epoch: 'f' }))
    await waitFor(() => isHandled(client, 'e'))
  })

  test('with a hub the centre is the second way: it takes over when no hub answers, and gives back', async () => {
    const { url } = await centres[kind]!()
    const port = await freePort()
    const first = await openHub({ publishTo: url, port })
    const client = openClient({ hubs: [first.url], tables: url })
    const shield = shieldOf(client)!
    heat(first, 'hot-1')
    await waitFor(() => isHandled(client, 'hot-1'))
    expect(shield).toMatchObject({ isByCentre: false, isConnected: true })
    await first.close()
    await waitFor(() => shield.isByCentre)
    const second = await openHub({ publishTo: url })
    heat(second, 'hot-2')
    await waitFor(() => isHandled(client, 'hot-2'))
    expect(shield).toMatchObject({ isByCentre: true, isConnected: false })
    const third = await openHub({ port })
    await waitFor(() => shield.isConnected && !shield.isByCentre)
    heat(third, 'hot-3')
    await waitFor(() => isHandled(client, 'hot-3'))
    expect(shield.tableVersion.epoch).toBe(third.core.delivery.epoch)
  })

  test('two hubs with one store write one table: no version of either goes back, and one goes on alone', async () => {
    const { url } = await centres[kind]!()
    const options = { publishTo: url, storeUrl: redis.url }
    const [first, second] = [await openHub(options), await openHub(options)]
    const client = openClient({ hubs: [], tables: url })
    const shield = shieldOf(client)!
    // Each hub counts its own versions, under its own epoch.
    const newest = new Map<string, number>()
    const isTaken = async (key: string) => {
      const { epoch, version } = shield.tableVersion
      expect(version).toBeGreaterThanOrEqual(newest.get(epoch) ?? 0)
      newest.set(epoch, version)
      return isHandled(client, key)
    }
    for (const [index, hub] of [first, second, first, second].entries()) {
      heat(hub, `hot-${index}`)
      await waitFor(() => isTaken(`hot-${index}`))
    }
    await first.close()
    heat(second, 'hot-4')
    await waitFor(() => isTaken('hot-4'))
    for (const index of [0, 1, 2, 3]) expect(await isTaken(`hot-${index}`), `hot-${index}`).toBe(true)
  })

  test('the command "proxy --tables" takes its table from there, in each of its threads', async () => {
    const { url } = await centres[kind]!()
    await openWriter(url).write('/firebreak/tables/shop', tableOf(1, ['a']))
    const flags = ['--tables', url, '--service', 'shop', '--cluster-id', 'main', '--workers', '2', '--port', '0']
    const upstream = ['--upstream', `redis://127.0.0.1:${redis.port}`]
    const proxy = startChild(process.execPath, [...sourceArgs, command, 'proxy', ...upstream, ...flags])
    ends.push(() => proxy.stop())
    const [, port] = await proxy.printed(/127\.0\.0\.1:(\d+)/, 60_000)
    const [client, direct] = [new Redis(Number(port)), new Redis(redis.port)]
    ends.push(() => [client, direct].map((each) => each.disconnect()))
    const calls = async () => Number(/cmdstat_get:calls=(\d+)/.exec(await direct.info('commandstats'))?.[1] ?? 0)
    await waitFor(async () => {
      const before = await calls()
      await Promise.all(Array.from({ length: 100 }, () => client.get('a')))
      return (await calls()) - before < 50
    })
  })
})

/** The hot keys of a document, by what the guide says of it. */
const readHotKeys = `
import json, sys, time
table = json.load(sys.stdin)
hot = {}
if not table["isOff"] and time.time() * 1000 < table["validUntil"]:
    for group in table["clusters"].get("main", []):
        for key in group["keys"]:
            hot[key] = group["strategy"]
print(json.dumps(hot))
`

/** Prints the document with nothing but curl, Python and ZooKeeper's own shell. */
const printDocument: Record<string, (address: string) => string> = {
  etcd: (address) => `
    curl -sS http://${address}/v3/kv/range -d "{\\"key\\":\\"$(printf /firebreak/tables/shop | base64)\\"}" |
    python3 -c 'import base64, json, sys; print(base64.b64decode(json.load(sys.stdin)["kvs"][0]["value"]).decode())'`,
  zookeeper: (address) =>
    `/usr/share/zookeeper/bin/zkCli.sh -server ${address} get /firebreak/tables/shop 2>/dev/null | grep '^{'`,
}

test.each(Object.keys(printDocument))('anybody who knows the document can read it from %s', async (kind) => {
  const { url, address } = await centres[kind]!()
  const hub = await openHub({ publishTo: url })
  heat(hub, 'hot-1')
  const script = `${printDocument[kind]!(address)} | python3 -c '${readHotKeys}'`
  await waitFor(
    async () => {
      const { stdout } = await run('sh', ['-c', script]).catch(() => ({ stdout: '' }))
      return stdout.trim() === '{"hot-1": "LocalCache"}'
    },
    { timeoutMs: 60_000 },
  )
})
