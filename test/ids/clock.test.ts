import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { decodeSnowflake } from '@firebreak/ids'
import {
  FakedClock,
  freePort,
  scale,
  startZooKeeper,
  temporaryFolder,
  waitFor,
  type ZooKeeperServer,
} from '@firebreak/testkit'
import { afterAll, beforeAll, describe, expect, test, vi } from 'vitest'
import { countDuplicates, get, readIds, spawnIds, startIds, startIssuer } from './ids-processes.ts'
import type { IssuerOrders } from './issuer.ts'

// Many processes start here, one after the other, which takes a while on a busy machine.
vi.setConfig({ testTimeout: 240_000 })

let zooKeeper: ZooKeeperServer
beforeAll(async () => {
  zooKeeper = await startZooKeeper()
})
afterAll(() => zooKeeper.stop())

async function newOrders(root: string): Promise<IssuerOrders> {
  const folder = temporaryFolder('clock')
  const [cacheFile, output] = [join(folder, 'worker.json'), join(folder, 'ids')]
  return { servers: zooKeeper.address, root, port: await freePort(), cacheFile, output, count: 0 }
}

interface Progress {
  readonly issued: number
  readonly errors: Record<string, number>
}

/** The last report of an issuer. */
function progressOf(output: string): Progress {
  return JSON.parse(
    output
      .match(/.*(\{"issued".*\})/s)![1]!
      .split('\n')
      .at(-1)!,
  ) as Progress
}

test(
  'ids at full rate, kill -9, clock −1 s, restart, again and again: no id twice',
  async () => {
    const orders = await newOrders('/crashes')
    const rounds = scale(2, 30)
    let refusals = 0
    for (let round = 0; round <= rounds; round++) {
      const before = round === 0 ? new BigUint64Array() : readIds(orders.output)
      const lastMs = round === 0 ? Date.now() + 1000 : decodeSnowflake(before.at(-1)!).timestampMs
      const clock = new FakedClock()
      const child = await startIssuer(orders, clock, () => clock.set(lastMs - 1000 - Date.now()))
      await waitFor(() => existsSync(orders.output) && readIds(orders.output).length > before.length + 20_000)
      child.signal('SIGKILL')
      await child.exited
      expect(child.output()).toContain('serving 0')
      // The fault was real: the process began nearly a second before its last id.
      expect(Number(child.output().match(/clock (\d+)/)![1])).toBeLessThan(lastMs - 500)
      refusals += child.output().match(/alarm FB_IDS_CLOCK_REFUSED\nrefused FB_IDS_CLOCK_REFUSED/g)?.length ?? 0
    }
    process.stderr.write(`${refusals} starts of ${rounds} rounds were refused, the others waited for the mark\n`)
    const ids = readIds(orders.output)
    expect(ids.length).toBeGreaterThan(rounds * 20_000)
    expect(countDuplicates([ids])).toBe(0)
  },
  scale(240_000, 600_000),
)

describe('a running node', () => {
  test('waits out clock steps back of up to 5 ms without an error, and ids stay increasing', async () => {
    const orders = await newOrders('/small-steps')
    const clock = new FakedClock()
    const child = await startIssuer(orders, clock)
    await child.printed(/"issued":[1-9]/)
    for (let step = 1; step <= 5; step++) {
      const { issued } = progressOf(child.output())
      clock.set(-4 * step)
      await waitFor(() => progressOf(child.output()).issued > issued + 20_000)
    }
    expect(progressOf(child.output()).errors).toEqual({})
    child.signal('SIGKILL')
    await child.exited
    expect(countDuplicates([readIds(orders.output)])).toBe(0)
  })

  test('answers a longer step back with the documented error at once, stays up, and recovers on its own', async () => {
    const orders = await newOrders('/long-steps')
    const clock = new FakedClock()
    const child = await startIssuer(orders, clock)
    await child.printed(/"issued":[1-9]/)
    clock.set(-1500)
    await waitFor(() => (progressOf(child.output()).errors['FB_IDS_CLOCK_BACKWARD'] ?? 0) > 100)
    const { issued } = progressOf(child.output())
    await waitFor(() => progressOf(child.output()).issued > issued + 20_000)
    expect(Object.keys(progressOf(child.output()).errors)).toEqual(['FB_IDS_CLOCK_BACKWARD'])
    child.signal('SIGKILL')
    await child.exited
    expect(countDuplicates([readIds(orders.output)])).toBe(0)
  })

  test('answers health checks over HTTP while its clock is behind', async () => {
    const clock = new FakedClock()
    const ids = await startIds(['--zookeeper', zooKeeper.address, '--root', '/health'], { clock })
    const first = await get(`${ids.url}/api/snowflake/get/x`)
    expect(first.status).toBe(200)
    clock.set(-60_000)
    expect(await get(`${ids.url}/api/snowflake/get/x`)).toMatchObject({
      status: 503,
      body: expect.stringContaining('FB_IDS_CLOCK_BACKWARD'),
    })
    expect((await get(`${ids.url}/livez`)).status).toBe(200)
    expect((await get(`${ids.url}/readyz`)).status).toBe(503)
    clock.set(100)
    const again = await get(`${ids.url}/api/snowflake/get/x`)
    expect(again.status).toBe(200)
    expect(BigInt(again.body) > BigInt(first.body)).toBe(true)
    await ids.child.stop()
  })
})

describe('a starting node', () => {
  test('is refused if its clock is behind leaf_forever/self, even without its file', async () => {
    const folder = temporaryFolder('ids')
    const port = String(await freePort())
    const args = ['--zookeeper', zooKeeper.address, '--root', '/self', '--port', port]
    const first = await startIds(args, { folder })
    await first.child.stop()
    for (const place of [folder, temporaryFolder('ids')]) {
      // More than a start may take on a busy machine, else its clock would be past the mark by then; less than abandonAfterMs.
      const refused = spawnIds(args, { folder: place, clock: new FakedClock(-240_000) })
      expect(await refused.exited).toBe(1)
      expect(refused.output()).toContain('alarm FB_IDS_CLOCK_REFUSED')
    }
    const again = await startIds(args, { folder })
    expect(again.workerId).toBe(first.workerId)
    await again.child.stop()
  })

  test('is refused if its clock is off the average of the live peers, asked over HTTP', async () => {
    const args = ['--zookeeper', zooKeeper.address, '--root', '/peers']
    const peers = await Promise.all([startIds(args), startIds(args)])
    for (const offsetMs of [-20_000, 20_000]) {
      const refused = spawnIds(args, { clock: new FakedClock(offsetMs) })
      expect(await refused.exited).toBe(1)
      expect(refused.output()).toContain('alarm FB_IDS_PEERS_DISAGREE')
      expect(refused.output()).toMatch(
        /clock against 2 of 2 peers: -?(19|20)\d{3} ms from their average, -?\d+ ms from their median/,
      )
    }
    const third = await startIds(args)
    expect(new Set([...peers, third].map(({ workerId }) => workerId)).size).toBe(3)
    await Promise.all([...peers, third].map(({ child }) => child.stop()))
  })
})
