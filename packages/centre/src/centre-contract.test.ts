import { startEtcd, startZooKeeper, waitFor } from '@firebreak/testkit'
import { afterEach, describe, expect, test } from 'vitest'
import type { ConfigCentre } from './centre.ts'
import { openCentre } from './open-centre.ts'
import { ConsulDouble } from './testing/consul-double.ts'
import { NacosDouble } from './testing/nacos-double.ts'

/** A running centre. */
interface RunningCentre {
  /** Its host and port. */
  readonly host: string
  /** Which credentials it accepts, if it requires any: as in a URL, and those of somebody else. */
  readonly user?: string
  readonly stranger?: string
  stop(): Promise<unknown>
  restart(): Promise<unknown>
}

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

async function askEtcd(url: string, path: string, body: object): Promise<void> {
  const response = await fetch(`${url}/v3/${path}`, { method: 'POST', body: JSON.stringify(body) })
  expect([path, response.status, await response.json()]).toEqual([path, 200, expect.anything()])
}

/** etcd and ZooKeeper are real; Consul and Nacos are stand-ins written from their documentation. */
const kinds: Record<string, (isGuarded: boolean) => Promise<RunningCentre>> = {
  async etcd(isGuarded) {
    let server = await startEtcd()
    ends.push(() => server.stop())
    if (isGuarded) {
      await askEtcd(server.url, 'auth/user/add', { name: 'root', password: 'se:cret' })
      await askEtcd(server.url, 'auth/role/add', { name: 'root' })
      await askEtcd(server.url, 'auth/user/grant', { user: 'root', role: 'root' })
      await askEtcd(server.url, 'auth/enable', {})
    }
    const restart = async () => {
      server = await server.restart()
    }
    const host = `127.0.0.1:${server.port}`
    return { host, user: 'root:se%3Acret', stranger: 'root:wrong', stop: () => server.stop(), restart }
  },
  async zookeeper() {
    let server = await startZooKeeper()
    ends.push(() => server.stop())
    const restart = async () => {
      server = await server.restart()
    }
    return { host: server.address, user: 'hub:secret', stranger: 'hub:wrong', stop: () => server.stop(), restart }
  },
  async consul(isGuarded) {
    const { server } = new ConsulDouble(isGuarded ? 'token-1' : undefined)
    await server.start()
    ends.push(() => server.stop())
    const host = `127.0.0.1:${server.port}`
    return { host, user: 'token-1', stranger: 'token-2', stop: () => server.stop(), restart: () => server.start() }
  },
  async nacos(isGuarded) {
    const { server } = new NacosDouble(isGuarded ? { name: 'nacos', password: 'secret' } : undefined)
    await server.start()
    ends.push(() => server.stop())
    const host = `127.0.0.1:${server.port}`
    return { host, user: 'nacos:secret', stranger: 'nacos:x', stop: () => server.stop(), restart: () => server.start() }
  },
}

function open(kind: string, host: string, user?: string): ConfigCentre {
  const centre = openCentre(`${kind}://${user === undefined ? '' : `${user}@`}${host}/a/b`)
  ends.push(() => centre.close())
  return centre
}

function follow(centre: ConfigCentre, path: string) {
  const texts: (string | undefined)[] = []
  const downs: string[] = []
  const watch = centre.watch(path, { onText: (text) => texts.push(text), onDown: ({ message }) => downs.push(message) })
  ends.push(() => watch.close())
  return { texts, downs, watch }
}

describe.each(Object.keys(kinds))('%s', (kind) => {
  test('reads what was written, byte for byte, and nothing where nothing is', async () => {
    const { host } = await kinds[kind]!(false)
    const centre = open(kind, host)
    expect(centre.root).toBe('/a/b')
    const path = '/a/b/news%2Fpaper'
    expect(await centre.read(path)).toBe(undefined)
    await centre.write(path, '{"ü":"…"}\n')
    expect(await centre.read(path)).toBe('{"ü":"…"}\n')
    const long = 'x'.repeat(centre.maxBytes)
    await centre.write(path, long)
    expect((await open(kind, host).read(path))?.length).toBe(long.length)
    expect(await centre.read('/a/b/news/paper')).toBe(undefined)
  })

  test('a watch reports what exists, what arrives, and nothing twice', async () => {
    const { host } = await kinds[kind]!(false)
    const [reader, writer] = [open(kind, host), open(kind, host)]
    const early = follow(reader, '/a/b/shop')
    await waitFor(() => early.texts.length === 1)
    expect(early.texts).toEqual([undefined])
    for (const text of ['1', '2', '2', '3']) {
      await writer.write('/a/b/shop', text)
      await waitFor(() => early.texts.at(-1) === text)
    }
    expect(early.texts).toEqual([undefined, '1', '2', '3'])
    const late = follow(reader, '/a/b/shop')
    await waitFor(() => late.texts.length === 1)
    await writer.write('/a/b/other', 'x')
    await writer.write('/a/b/shop', '4')
    await waitFor(() => late.texts.at(-1) === '4' && early.texts.at(-1) === '4')
    expect(late.texts).toEqual(['3', '4'])
    late.watch.close()
    await writer.write('/a/b/shop', '5')
    await waitFor(() => early.texts.at(-1) === '5')
    expect(late.texts).toEqual(['3', '4'])
  })

  test('of many writes at once the last one is reported, in order', async () => {
    const { host } = await kinds[kind]!(false)
    const [reader, writer] = [open(kind, host), open(kind, host)]
    const { texts } = follow(reader, '/a/b/shop')
    for (let count = 1; count <= 50; count++) await writer.write('/a/b/shop', String(count))
    await waitFor(() => texts.at(-1) === '50')
    const told = texts.filter((text) => text !== undefined).map(Number)
    expect(told).toEqual([...told].sort((a, b) => a - b))
  })

  test('a watch survives a restart of the centre, and can start before the centre does', async () => {
    const centre = await kinds[kind]!(false)
    const writer = open(kind, centre.host)
    await writer.write('/a/b/shop', 'before')
    const running = follow(open(kind, centre.host), '/a/b/shop')
    await waitFor(() => running.texts.length === 1)
    await centre.stop()
    await waitFor(() => running.downs.length === 1 && !running.watch.isLive, { timeoutMs: 30_000 })
    const early = follow(open(kind, centre.host), '/a/b/shop')
    await waitFor(() => early.downs.length === 1)
    await expect(writer.write('/a/b/shop', 'lost')).rejects.toMatchObject({ code: 'FB_CENTRE_DOWN' })
    await centre.restart()
    await waitFor(
      () =>
        writer
          .write('/a/b/shop', 'after')
          .then(() => true)
          .catch(() => false),
      { timeoutMs: 30_000 },
    ) // prettier-ignore
    await waitFor(() => running.texts.at(-1) === 'after' && early.texts.at(-1) === 'after', { timeoutMs: 30_000 })
    expect(running.texts).toEqual(['before', 'after'])
    expect(running.downs).toHaveLength(1)
    expect(running.watch.isLive).toBe(true)
  })

  test('the next host is asked if the first is down', async () => {
    const { host } = await kinds[kind]!(false)
    const centre = open(kind, `127.0.0.1:1,${host}`)
    await waitFor(() =>
      centre
        .write('/a/b/shop', 'x')
        .then(() => true)
        .catch(() => false),
    ) // prettier-ignore
    const { texts } = follow(centre, '/a/b/shop')
    await waitFor(() => texts.at(-1) === 'x')
  })

  test('the right user or token is accepted, and no other', async () => {
    const { host, user, stranger } = await kinds[kind]!(true)
    const owner = open(kind, host, user)
    await owner.write('/a/b/shop', 'mine')
    const { texts } = follow(owner, '/a/b/shop')
    await waitFor(() => texts.at(-1) === 'mine')
    for (const other of [open(kind, host, stranger), open(kind, host)]) {
      await expect(other.read('/a/b/shop')).rejects.toMatchObject({ code: expect.stringMatching(/^FB_CENTRE_/) })
      const { downs } = follow(other, '/a/b/shop')
      await waitFor(() => downs.length === 1)
      expect(downs[0]).not.toMatch(/se:cret|secret|wrong|token-2/)
    }
  })
})

test.each(['etcd:/x', 'redis://h', 'etcd://h:99999', 'zookeeper://', 'consul://user:secret@'])(
  '%s is not a centre, and the error does not contain its password',
  (url) => {
    expect(() => openCentre(url, { option: 'tables' })).toThrow(/option tables .* must be etcd:/)
    expect(() => openCentre(url)).not.toThrow(/secret/)
  },
)
