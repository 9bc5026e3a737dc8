import { EtcdClient, ZooKeeperClient } from '@firebreak/centre'
import { encodeBinaryReport, type PublishedTable } from '@firebreak/core'
import { startHub } from '@firebreak/hub'
import { startEtcd, startZooKeeper, waitFor } from '@firebreak/testkit'
import { afterEach, describe, expect, test } from 'vitest'

type Hub = Awaited<ReturnType<typeof startHub>>

interface Centre {
  readonly url: string
  read(path: string): Promise<string | undefined>
  stop(): Promise<unknown>
  restart(): Promise<unknown>
}

const ends: (() => unknown)[] = []
afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

const centres: Record<string, () => Promise<Centre>> = {
  async etcd() {
    let server = await startEtcd()
    ends.push(() => server.stop())
    const client = new EtcdClient({ endpoints: server.url })
    const url = server.url.replace('http:', 'etcd:')
    const read = async (path: string) => (await client.get(path))?.value
    const restart = async () => {
      server = await server.restart()
    }
    return { url, read, stop: () => server.stop(), restart }
  },
  async zookeeper() {
    let server = await startZooKeeper()
    ends.push(() => server.stop())
    const client = new ZooKeeperClient({ servers: server.address })
    ends.push(() => client.close())
    const read = async (path: string) => {
      await client.connect()
      return (await client.getData(path))?.data
    }
    const restart = async () => {
      server = await server.restart()
    }
    return { url: `zookeeper://${server.address}`, read, stop: () => server.stop(), restart }
  },
}

let sequence = 0

function report(hub: Hub, serviceId: string, key: string): void {
  const now = Math.floor(hub.core.now())
  const sections = [{ redisClusterId: 'main', entries: [{ key, count: 1000, writes: 0, bytes: 0 }] }]
  const ids = { serviceId, hostId: 'h', instanceId: `${serviceId}-i` }
  hub.core.collector.collectBinary(encodeBinaryReport({ collectTs: now, sendTs: now, ...ids, sections }), 0, ++sequence)
}

describe.each(Object.keys(centres))('%s', (name) => {
  test('each service has its table in the centre, also after the centre was away', async () => {
    const centre = await centres[name]!()
    const rule = { id: 'hot', prefix: 'hot-', threshold: 300, windowMs: 1000, minHoldMs: 600_000 }
    const hub = await startHub({ publishTo: centre.url, initialRules: [rule], logLevel: 'silent' })
    ends.push(() => hub.close())
    const tableOf = async (serviceId: string) => {
      const text = await centre.read(`/firebreak/tables/${serviceId}`).catch(() => undefined)
      return text === undefined ? undefined : (JSON.parse(text) as PublishedTable)
    }
    const keysOf = async (serviceId: string) =>
      ((await tableOf(serviceId))?.clusters['main'] ?? []).flatMap(({ keys }) => keys as string[])

    report(hub, 'shop', 'hot-1')
    report(hub, 'news%2Fpaper', 'hot-2')
    await waitFor(async () => (await keysOf('shop')).includes('hot-1'))
    // A name that is no path stands there encoded.
    await waitFor(async () => (await keysOf('news%252Fpaper')).includes('hot-2'))
    expect(await keysOf('shop')).toEqual(['hot-1'])
    const table = (await tableOf('shop'))!
    expect(table).toMatchObject({ epoch: hub.core.delivery.epoch, isOff: false })
    expect(table.clusters['main']![0]).toMatchObject({ strategy: 'LocalCache' })
    expect(table.validUntil).toBeGreaterThan(Date.now())

    const isAlarmed = () => hub.core.alarms.list().some(({ id }) => id === 'publish')
    await centre.stop()
    report(hub, 'shop', 'hot-3')
    await waitFor(isAlarmed, { timeoutMs: 30_000 })
    await centre.restart()
    await waitFor(async () => (await keysOf('shop')).includes('hot-3'), { timeoutMs: 60_000 })
    await waitFor(() => !isAlarmed())
    hub.core.delivery.setOff(true)
    hub.core.delivery.flush()
    await waitFor(async () => (await tableOf('shop'))?.isOff === true)
  })
})

test('a centre that is none is refused before anything is opened, without its password in the sentence', async () => {
  await expect(startHub({ publishTo: 'redis://user:secret@host' })).rejects.toThrow(
    'publishTo must be etcd://host:port/root or zookeeper://host:port/root',
  )
})
