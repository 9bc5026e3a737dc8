import { peek, unprotect } from '@firebreak/client'
import { defaultLocalCache } from '@firebreak/core'
import { type RedisServer, redisCli, startCluster, startRedis, startSentinel, waitFor } from '@firebreak/testkit'
import { Cluster } from 'ioredis'
import { Cluster as ClusterOfValkey } from 'iovalkey'
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { Fixture } from './fixture.ts'
import { type AnyClient, libraries, type Place } from './libraries.ts'

// Clients of one process that are different users get what each may read, whoever read it first.

let server: RedisServer
let fixture: Fixture

beforeAll(async () => {
  server = await startRedis()
})
afterAll(() => server.stop())
beforeEach(async () => {
  fixture = await Fixture.start(server.port)
  await server.cli('ACL', 'SETUSER', 'reader', 'reset', 'on', '>pass', '~*', '+@all')
  await server.cli('ACL', 'SETUSER', 'guest', 'reset', 'on', '>word', '~open', '+@all')
  await server.cli('MSET', 'secret', 'of the reader', 'open', 'to all')
})
afterEach(() => fixture.close())

const reader = { username: 'reader', password: 'pass' }
const guest = { username: 'guest', password: 'word' }

describe.each(Object.keys(libraries))('%s', (name) => {
  async function open(login?: typeof reader, database = 0): Promise<AnyClient> {
    const place = { kind: 'standalone', port: server.port, database, ...(login && { login }) } as const
    const client = await libraries[name]!(place)
    await fixture.adopt(client.raw)
    return client
  }

  test('a user gets nothing that another may read and it may not', async () => {
    const first = await open(reader)
    const second = await open(guest)
    await fixture.makeHot(first, 'secret')
    for (let count = 0; count < 10; count++) await expect(second.get('secret')).rejects.toThrow('NOPERM')
    expect(await first.get('secret')).toBe('of the reader')
    // What the limited one may read is served to it as to anybody.
    await fixture.makeHot(second, 'open')
    expect(await second.get('open')).toBe('to all')
  })

  test('a login that fails, or is dropped with its transaction, leaves the user who it was', async () => {
    const [client, other] = [await open(reader), await open(reader)]
    await fixture.makeHot(other, 'secret')
    const isRefused = () => expect(client.get('secret')).rejects.toThrow('NOPERM')
    await client.call(['AUTH', 'guest', 'word'])
    for (const words of [
      ['AUTH', 'reader', 'wrong'],
      ['HELLO', '2', 'AUTH', 'reader', 'wrong'],
    ]) {
      const failing = expect(client.call(words)).rejects.toThrow('WRONGPASS')
      await isRefused()
      await failing
      // Somebody else fills the memory again.
      await fixture.isServed(() => other.get('secret'))
      await isRefused()
    }
    await client.call(['MULTI'])
    await client.call(['AUTH', 'reader', 'pass'])
    await client.call(['DISCARD'])
    await isRefused()
    await client.call(['AUTH', 'reader', 'pass'])
    await fixture.isServed(() => client.get('secret'))
  })

  test('users of other databases get the keys of their own', async () => {
    await fixture.plain.select(1)
    await fixture.plain.set('open', 'in one')
    const first = await open(reader)
    const second = await open(guest, 1)
    await fixture.makeHot(first, 'open')
    await fixture.isServed(() => second.get('open'))
    expect(await first.get('open')).toBe('to all')
    expect(await second.get('open')).toBe('in one')
  })

  test('a right that another client of the process takes away ends at once', async () => {
    const admin = await open()
    const second = await open(guest)
    await fixture.makeHot(second, 'open')
    for (let round = 0; round < 20; round++) {
      await admin.call(['ACL', 'SETUSER', 'guest', 'resetkeys'])
      await expect(second.get('open')).rejects.toThrow('NOPERM')
      await admin.call(['ACL', 'SETUSER', 'guest', '~open'])
      expect(await second.get('open')).toBe('to all')
      expect(await second.get('open')).toBe('to all')
    }
  })

  test('a right that somebody else takes away ends within five seconds, however often the key is read', async () => {
    const second = await open(guest)
    // By its own time it would be served for a minute.
    fixture.hub.heat('main', ['open'], { strategy: { ...defaultLocalCache, expireTime: 60 } })
    await fixture.isServed(() => second.get('open'))
    await server.cli('ACL', 'SETUSER', 'guest', 'resetkeys')
    const since = performance.now()
    let servedFor = 0
    for (let isOver = false; !isOver; ) {
      // Replies of the watcher are read between two turns.
      await new Promise(setImmediate)
      await second.get('open').then(
        () => (servedFor = performance.now() - since),
        () => (isOver = true),
      )
      expect(servedFor).toBeLessThan(5500)
    }
    // Without a guard on rights it would have ended for another reason, or not at all.
    expect(servedFor).toBeGreaterThan(1000)
  })

  test('a wrong password gets nothing of the right one', async () => {
    const first = await open(reader)
    await fixture.makeHot(first, 'secret')
    // node-redis does not even connect.
    if (!name.startsWith('ioredis')) return
    const second = await open({ ...reader, password: 'wrong' })
    ;(second.raw as { on(event: string, listener: () => void): void }).on('error', () => {})
    const reply = await Promise.race([second.get('secret').catch(() => 'refused'), first.call(['PING'])])
    expect(reply).not.toBe('of the reader')
    second.close()
  })
})

describe('two of a kind under one name', () => {
  const starts: Record<string, () => Promise<Place>> = {
    async 'Sentinel groups'() {
      const { name, sentinels, stop } = await startSentinel({ sentinels: 1, replicas: 0 })
      fixture.onClose(stop)
      return { kind: 'sentinel', name, sentinels }
    },
    async clusters() {
      const { addresses, stop } = await startCluster()
      fixture.onClose(stop)
      return { kind: 'cluster', addresses }
    },
  }

  test.each(Object.keys(starts).flatMap((kind) => Object.keys(libraries).map((library) => [kind, library] as const)))(
    '%s: %s gives each client what its own has',
    async (kind, library) => {
      const open = async (value: string) => {
        const client = await libraries[library]!(await starts[kind]!())
        await fixture.adopt(client.raw)
        await client.set('k', value)
        return client
      }
      const [first, second] = [await open('first'), await open('second')]
      fixture.hub.heat('main', ['k'])
      const isServed = (client: AnyClient, value: string) =>
        waitFor(
          async () => {
            expect(await client.get('k')).toBe(value)
            return peek(client.raw, 'k') === value
          },
          { what: 'k to be served' },
        )
      await isServed(first, 'first')
      await isServed(second, 'second')
      for (let round = 0; round < 20; round++) {
        await second.set('k', `second ${round}`)
        expect(await second.get('k')).toBe(`second ${round}`)
        expect(await first.get('k')).toBe('first')
      }
      await isServed(second, 'second 19')
      await isServed(first, 'first')
    },
  )
})

test.each(Object.keys(libraries))(
  '%s: users of a cluster are told apart, and the last keeps what the first had',
  async (library) => {
    const { addresses, nodes, stop } = await startCluster()
    fixture.onClose(stop)
    for (const { port } of nodes) {
      await redisCli(port, 'ACL', 'SETUSER', 'reader', 'on', '>pass', '~*', '+@all')
      await redisCli(port, 'ACL', 'SETUSER', 'guest', 'on', '>word', '~open', '+@all')
    }
    const open = async (login: typeof reader) => {
      const client = await libraries[library]!({ kind: 'cluster', addresses, login })
      await fixture.adopt(client.raw)
      return client
    }
    const [first, second, limited] = [await open(reader), await open(reader), await open(guest)]
    await first.set('secret', 'of the reader')
    fixture.hub.heat('main', ['secret'])
    const isServed = (client: AnyClient) =>
      waitFor(
        async () => (await client.get('secret')) === 'of the reader' && peek(client.raw, 'secret') !== undefined,
        {
          what: 'the secret to be served',
        },
      )
    await isServed(first)
    await expect(limited.get('secret')).rejects.toThrow('NOPERM')
    expect(peek(limited.raw, 'secret')).toBeUndefined()
    unprotect(first.raw)
    first.close()
    await isServed(second)
    await expect(limited.get('secret')).rejects.toThrow('NOPERM')
  },
)

describe('a cluster whose nodes are named with their users', () => {
  async function start(password?: string) {
    const cluster = await startCluster()
    fixture.onClose(cluster.stop)
    for (const { port } of cluster.nodes) {
      await redisCli(port, 'ACL', 'SETUSER', 'reader', 'on', '>pass', '~*', '+@all')
      await redisCli(port, 'ACL', 'SETUSER', 'guest', 'on', '>word', '~open', '+@all')
      if (password !== undefined) await redisCli(port, 'CONFIG', 'SET', 'requirepass', password)
    }
    return cluster
  }
  const urls = (addresses: readonly { host: string; port: number }[], login: string) =>
    addresses.map(({ host, port }) => `redis://${login}@${host}:${port}`)

  const opened: Record<string, (nodes: object[] | string[]) => Cluster> = {
    ioredis: (nodes) => new Cluster(nodes as string[]),
    iovalkey: (nodes) => new ClusterOfValkey(nodes as string[]) as unknown as Cluster,
  }

  test.each(Object.keys(opened))('%s: gives each user what it may read', async (library) => {
    const { addresses } = await start()
    const [first, limited] = [
      await fixture.adopt(opened[library]!(urls(addresses, 'reader:pass'))),
      await fixture.adopt(opened[library]!(addresses.map((place) => ({ ...place, ...guest })))),
    ]
    await first.set('secret', 'of the reader')
    fixture.hub.heat('main', ['secret'])
    await waitFor(async () => (await first.get('secret')) === 'of the reader' && peek(first, 'secret') !== undefined, {
      what: 'the secret to be served',
    })
    await expect(limited.get('secret')).rejects.toThrow('NOPERM')
    expect(peek(limited, 'secret')).toBeUndefined()
  })

  test.each(Object.keys(opened))('%s: is served where a password is required', async (library) => {
    const { addresses } = await start('needed')
    const client = await fixture.adopt(opened[library]!(urls(addresses, ':needed')))
    await client.set('k', 'v')
    fixture.hub.heat('main', ['k'])
    await waitFor(async () => (await client.get('k')) === 'v' && peek(client, 'k') === 'v', { what: 'k to be served' })
  })

  test('is not served where the users of its nodes differ', async () => {
    const { addresses } = await start()
    const [one, ...others] = addresses
    const client = await fixture.adopt(
      new Cluster([...urls([one!], 'guest:word'), ...urls(others, 'reader:pass')], { redisOptions: reader }),
    )
    const alike = await fixture.adopt(new Cluster([...addresses], { redisOptions: reader }))
    for (const key of ['{a}', '{b}', '{c}', '{d}', '{e}', '{f}']) await alike.set(key, 'v')
    fixture.hub.heat('main', ['{a}', '{b}', '{c}', '{d}', '{e}', '{f}'])
    let refused = 0
    for (const key of ['{a}', '{b}', '{c}', '{d}', '{e}', '{f}']) {
      await waitFor(async () => (await alike.get(key)) === 'v' && peek(alike, key) === 'v', {
        what: 'key to be served',
      })
      await client.get(key).catch(() => refused++)
      expect(peek(client, key)).toBeUndefined()
    }
    expect(refused).toBeGreaterThan(0)
  })
})
