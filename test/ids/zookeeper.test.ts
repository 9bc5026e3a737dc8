import { copyFileSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { freePort, startZooKeeper, temporaryFolder, waitFor, type ZooKeeperServer } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test, vi } from 'vitest'
import { get, type IdsProcess, spawnIds, startIds } from './ids-processes.ts'

// Many processes start here, one after the other, which takes a while on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

let zooKeeper: ZooKeeperServer
beforeAll(async () => {
  zooKeeper = await startZooKeeper()
})
afterAll(() => zooKeeper.stop())

interface Status {
  readonly snowflake: { state: string; workerId: number; registry: { isUp: boolean; reportedAt: number } }
}

async function statusOf({ url }: IdsProcess): Promise<Status['snowflake']> {
  return (JSON.parse((await get(`${url}/api/ids/status`)).body) as Status).snowflake
}

async function idOf({ url }: IdsProcess): Promise<bigint> {
  const { status, body } = await get(`${url}/api/snowflake/get/x`)
  expect(status, body).toBe(200)
  return BigInt(body)
}

test.concurrent('ZooKeeper killed while nodes run, absent at a start, and back: ids never stop or repeat', async () => {
  let zooKeeper = await startZooKeeper()
  const folder = temporaryFolder('ids')
  const port = String(await freePort())
  const args = (cache: string, own: string) => [
    '--zookeeper',
    zooKeeper.address,
    '--root',
    '/outage',
    '--port',
    own,
    '--cache-file',
    join(folder, cache),
  ]
  const [staying, restarted] = await Promise.all([
    startIds(args('staying.json', String(await freePort())), { folder }),
    startIds(args('restarted.json', port), { folder }),
  ])
  expect(staying.workerId).not.toBe(restarted.workerId)
  const seen = new Set<bigint>([await idOf(staying), await idOf(restarted)])

  // Killed while running.
  zooKeeper.child.signal('SIGKILL')
  await zooKeeper.child.exited
  await waitFor(async () => !(await statusOf(staying)).registry.isUp)
  expect(await statusOf(staying)).toMatchObject({ state: 'serving', workerId: staying.workerId })
  seen.add(await idOf(staying))

  // Down at a start, after a kill -9.
  restarted.child.signal('SIGKILL')
  await restarted.child.exited
  const again = await startIds(args('restarted.json', port), { folder })
  expect(again.workerId).toBe(restarted.workerId)
  expect(again.child.output()).toContain('alarm FB_IDS_REGISTRY_DOWN')
  seen.add(await idOf(again))

  // Down at a start with a copied file, and with none.
  copyFileSync(join(folder, 'restarted.json'), join(folder, 'copied.json'))
  const copied = spawnIds(args('copied.json', String(await freePort())), { folder })
  const empty = spawnIds(args('none.json', String(await freePort())), { folder })
  expect(await copied.exited).toBe(1)
  expect(copied.output()).toContain('FB_IDS_CACHE_FOREIGN')
  expect(await empty.exited).toBe(1)
  expect(empty.output()).toContain('FB_IDS_CACHE_MISSING')

  // Back: both report again, with their worker ids.
  zooKeeper = await zooKeeper.restart()
  for (const node of [staying, again]) {
    await waitFor(async () => (await statusOf(node)).registry.isUp, { timeoutMs: 20_000 })
    expect(await statusOf(node)).toMatchObject({ state: 'serving', workerId: node.workerId })
    seen.add(await idOf(node))
  }
  expect(seen.size).toBe(6)
  await Promise.all([staying.child.stop(), again.child.stop(), zooKeeper.stop()])
})

test.concurrent('two nodes with one address: the second is refused, whatever file it has', async () => {
  const folder = temporaryFolder('ids')
  const advertised = `127.0.0.1:${await freePort()}`
  const args = ['--zookeeper', zooKeeper.address, '--root', '/twins', '--advertise', advertised]
  const first = await startIds([...args, '--cache-file', join(folder, 'first.json')], { folder })
  copyFileSync(join(folder, 'first.json'), join(folder, 'copy.json'))
  const twins = ['second.json', 'copy.json'].map((name) =>
    spawnIds([...args, '--cache-file', join(folder, name)], { folder }),
  )
  for (const twin of twins) {
    expect(await twin.exited).toBe(1)
    expect(twin.output()).toContain('alarm FB_IDS_ADDRESS_TAKEN')
  }
  await idOf(first)
  await first.child.stop()
  rmSync(join(folder, 'copy.json'))
})

test.concurrent('five services starting at once on an empty tree get five ids', async () => {
  const nodes = await Promise.all(
    Array.from({ length: 5 }, () => startIds(['--zookeeper', zooKeeper.address, '--root', '/five'])),
  )
  expect(nodes.map(({ workerId }) => workerId).sort()).toEqual([0, 1, 2, 3, 4])
  await Promise.all(nodes.map(({ child }) => child.stop()))
})
