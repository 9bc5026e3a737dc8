import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { freePorts, scale, startZooKeeper, temporaryFolder, type ZooKeeperServer } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { countDuplicates, readIds, startIssuer } from './ids-processes.ts'

let zooKeeper: ZooKeeperServer
beforeAll(async () => {
  zooKeeper = await startZooKeeper()
})
afterAll(() => zooKeeper.stop())

test('8 processes issuing at once: all ids unique, increasing per process, at most 4,096 a millisecond', async () => {
  const count = scale(60_000, 1_000_000)
  const folder = temporaryFolder('eight')
  const ports = await freePorts(8)
  const issuers = await Promise.all(
    ports.map(async (port) => {
      const output = join(folder, `${port}.ids`)
      const cacheFile = join(folder, `${port}.json`)
      const orders = { servers: zooKeeper.address, root: '/eight', port, cacheFile, output, count }
      return { output, child: await startIssuer(orders) }
    }),
  )
  for (const { child } of issuers) {
    expect(await child.exited, child.output()).toBe(0)
    expect(child.output()).not.toMatch(/"FB_/)
  }
  const lists = issuers.map(({ output }) => readIds(output))
  const workers = new Set<bigint>()
  for (const ids of lists) {
    expect(ids.length).toBeGreaterThanOrEqual(count)
    let inMillisecond = 0
    let mostInMillisecond = 0
    for (let index = 0; index < ids.length; index++) {
      const isNewMillisecond = index === 0 || ids[index]! >> 22n !== ids[index - 1]! >> 22n
      if (index > 0 && ids[index]! <= ids[index - 1]!) expect.fail(`${ids[index]} after ${ids[index - 1]}`)
      inMillisecond = isNewMillisecond ? 1 : inMillisecond + 1
      mostInMillisecond = Math.max(mostInMillisecond, inMillisecond)
    }
    expect(mostInMillisecond).toBeLessThanOrEqual(4096)
    workers.add((ids[0]! >> 12n) & 1023n)
  }
  expect(workers.size).toBe(8)
  expect(countDuplicates(lists)).toBe(0)
  // The cache files name eight different workers too.
  const cached = ports.map((port) => JSON.parse(readFileSync(join(folder, `${port}.json`), 'utf8')).workerId)
  expect(new Set(cached).size).toBe(8)
}, 300_000)
