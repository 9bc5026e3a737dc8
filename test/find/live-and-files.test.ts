import { truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { findBigInRdb, findBigLive } from '@firebreak/find'
import { type RedisServer, scale, startCluster, startRedis } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { bigElements, fillSmall, plantBig, plantedNames } from './planted.ts'

let server: RedisServer
beforeAll(async () => {
  server = await startRedis({ args: ['--maxmemory-policy', 'allkeys-lfu'] })
  await fillSmall(server, scale(20_000, 1_000_000))
  await plantBig(server.cli)
  await server.cli('SAVE')
})
afterAll(() => server.stop())

test('all planted big keys are found in a dump file, in order, with what the file says about them', async () => {
  const progress: number[] = []
  const { finding, error } = await findBigInRdb({
    file: join(server.folder, 'dump.rdb'),
    progress: ({ done }) => progress.push(done),
  })
  expect(error).toBeUndefined()
  expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
  expect(finding.keys[1]).toMatchObject({ type: 'list', elements: bigElements(1), encoding: 'quicklist' })
  expect(finding.keys[0]!.frequency).toBeGreaterThan(0)
  const prefixes = finding.prefixes!.children
  expect(prefixes.map(({ prefix }) => prefix).sort()).toEqual(['planted:', 'small:'])
  expect(prefixes[0]!.bytes).toBeGreaterThan(prefixes[1]!.bytes)
  expect(finding.scanned).toBe(Number(await server.cli('DBSIZE')))
  expect(progress.at(-1)).toBeGreaterThan(0)
})

test.each(['yes', 'no'])(
  'live, as a replica, diskless %s: the same keys, without a file on our side',
  async (diskless) => {
    await server.cli('CONFIG', 'SET', 'repl-diskless-sync', diskless)
    await server.cli('CONFIG', 'SET', 'repl-diskless-sync-delay', '0')
    const { finding, error } = await findBigLive({ target: { port: server.port } })
    expect(error).toBeUndefined()
    expect(finding).toMatchObject({ method: 'live', isComplete: true })
    expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
    expect(finding.keys[0]!.node).toBe(`127.0.0.1:${server.port}`)
    expect(finding.scanned).toBe(Number(await server.cli('DBSIZE')))
  },
)

test('live over all nodes of a cluster gives one answer', async () => {
  const cluster = await startCluster({ masters: 3, args: ['--repl-diskless-sync-delay', '0'] })
  try {
    await plantBig((...args) => cluster.nodes[0]!.cli('-c', ...args))
    const { finding } = await findBigLive({ target: { port: cluster.nodes[2]!.port } })
    expect(finding.keys.map(({ key }) => key)).toEqual(plantedNames)
    expect(new Set(finding.keys.map(({ node }) => node)).size).toBeGreaterThan(1)
  } finally {
    await cluster.stop()
  }
})

test('a server that refuses PSYNC is distinguished from one that is gone', async () => {
  await server.cli(
    'ACL',
    'SETUSER',
    'reader',
    'on',
    '>secret',
    '~*',
    '+@read',
    '+info',
    '+dbsize',
    '+client',
    '+memory',
  )
  const target = { port: server.port, username: 'reader', password: 'secret' }
  const { error } = await findBigLive({ target })
  expect(error?.message).toMatch(/does not send its data: NOPERM.*\+psync/)
})

test('a dump that is cut off or damaged gives what precedes the damage, and the offset', async () => {
  const { readFile } = await import('node:fs/promises')
  const whole = await readFile(join(server.folder, 'dump.rdb'))
  const file = join(server.folder, 'damaged.rdb')
  await writeFile(file, whole)
  await truncate(file, Math.floor(whole.length / 2))
  const cut = await findBigInRdb({ file })
  expect(cut.error).toMatchObject({ code: 'FB_RDB_TRUNCATED' })
  expect(cut.finding.isComplete).toBe(false)
  expect(cut.finding.scanned).toBeGreaterThan(0)
  const damaged = Buffer.from(whole)
  damaged[damaged.length - 20]! ^= 0x40
  await writeFile(file, damaged)
  const bad = await findBigInRdb({ file })
  expect(bad.error?.message).toMatch(/^RDB at byte \d+: /)
})
