import {
  type MariadbServer,
  type PostgresServer,
  scale,
  startMariadb,
  startPostgres,
  waitFor,
} from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { countDuplicates, get, type IdsProcess, startIds } from './ids-processes.ts'

// Many processes start here, one after the other, which takes a while on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

let mariadb: MariadbServer
let postgres: PostgresServer
beforeAll(async () => {
  ;[mariadb, postgres] = await Promise.all([startMariadb(), startPostgres()])
})
afterAll(() => Promise.all([mariadb.stop(), postgres.stop()]))

const databases: Record<string, () => MariadbServer | PostgresServer> = {
  mariadb: () => mariadb,
  postgres: () => postgres,
}

async function batch({ url }: IdsProcess, tag: string, count: number): Promise<BigUint64Array> {
  const { status, body } = await get(`${url}/api/segment/get/${tag}?count=${count}`)
  expect(status, body).toBe(200)
  return BigUint64Array.from((JSON.parse(body) as string[]).map(BigInt))
}

interface Buffer {
  readonly tag: string
  readonly left: number
  readonly ready: number
}

async function bufferOf({ url }: IdsProcess, tag: string): Promise<Buffer> {
  const buffers = JSON.parse((await get(`${url}/api/ids/buffers`)).body) as Buffer[]
  return buffers.find((buffer) => buffer.tag === tag)!
}

describe.each(Object.keys(databases))('%s', (kind) => {
  test('3 servers over one database, one of them killed and started again: all ids unique, gaps only', async () => {
    const { url } = databases[kind]!()
    const perServer = scale(40_000, 1_000_000)
    const args = ['--database', url, '--tag', 'order:100']
    const servers = await Promise.all([startIds(args), startIds(args), startIds(args)])
    const lists: BigUint64Array[] = []
    await Promise.all(
      servers.map(async (first, index) => {
        let server = first
        for (let given = 0; given < perServer; given += 10_000) {
          if (index === 2 && given >= perServer / 2 && server === first) {
            server.child.signal('SIGKILL')
            await server.child.exited
            server = await startIds(args)
          }
          lists.push(await batch(server, 'order', 10_000))
        }
        await server.child.stop()
      }),
    )
    expect(lists.reduce((sum, { length }) => sum + length, 0)).toBe(3 * perServer)
    expect(countDuplicates(lists)).toBe(0)
    for (const ids of lists)
      for (let at = 1; at < ids.length; at++) if (ids[at]! <= ids[at - 1]!) expect.fail('not increasing')
  }, 300_000)

  test('database killed: exactly the buffered ids, then errors within a second, then recovery without a restart', async () => {
    const server = await startIds(['--database', databases[kind]!().url, '--tag', 'outage:1000'])
    await batch(server, 'outage', 101)
    const { left, ready } = await waitFor(async () => {
      const buffer = await bufferOf(server, 'outage')
      return buffer.ready > 0 ? buffer : undefined
    })
    databases[kind]!().child.signal('SIGKILL')
    await databases[kind]!().child.exited
    const rest = await batch(server, 'outage', left + ready)
    expect(rest.length).toBe(left + ready)
    const startedAt = performance.now()
    const failed = await get(`${server.url}/api/segment/get/outage`)
    // The promise is one second; the machine that runs this may be busy.
    expect(performance.now() - startedAt).toBeLessThan(3000)
    expect(failed).toMatchObject({ status: 503, body: expect.stringContaining('FB_IDS_DATABASE_DOWN') })
    expect((await get(`${server.url}/livez`)).status).toBe(200)
    expect((await get(`${server.url}/readyz`)).status).toBe(503)

    if (kind === 'mariadb') mariadb = await mariadb.restart()
    else postgres = await postgres.restart()
    const next = await waitFor(async () => {
      const { status, body } = await get(`${server.url}/api/segment/get/outage`)
      return status === 200 ? BigInt(body) : undefined
    })
    expect(next > rest.at(-1)!).toBe(true)
    await server.child.stop()
  })
})

test('tags spread over two databases: killing one does not affect the tags of the other', async () => {
  const server = await startIds([
    ...['--database', mariadb.url, '--database', postgres.url],
    ...['--tag', 'spread1:10', '--tag', 'spread2:10', '--tag', 'spread3:10', '--tag', 'spread4:10'],
  ])
  const stores = JSON.parse((await get(`${server.url}/api/ids/databases`)).body) as { rows: { tag: string }[] }[]
  const spread = stores.map(({ rows }) => rows.map(({ tag }) => tag).filter((tag) => tag.startsWith('spread')))
  expect(spread.every((tags) => tags.length > 0)).toBe(true)
  postgres.child.signal('SIGKILL')
  await postgres.child.exited
  expect((await batch(server, spread[0]![0]!, 1000)).length).toBe(1000)
  expect((await get(`${server.url}/api/segment/get/${spread[1]![0]}`)).status).toBe(503)
  postgres = await postgres.restart()
  await waitFor(async () => (await get(`${server.url}/api/segment/get/${spread[1]![0]}`)).status === 200)
  await server.child.stop()
})
