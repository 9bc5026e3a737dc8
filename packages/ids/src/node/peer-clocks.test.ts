import { createServer, type Server } from 'node:http'
import { steadyClock, systemTimers } from '@firebreak/core'
import { freePort } from '@firebreak/testkit'
import { afterEach, expect, test } from 'vitest'
import { askPeerClocks, askTimeOverHttp, timePath } from './peer-clocks.ts'

const asker = {
  clock: { now: () => Date.now() },
  steady: steadyClock,
  askTime: askTimeOverHttp(systemTimers, 2000),
}

const servers: Server[] = []
afterEach(() => {
  for (const server of servers.splice(0)) server.close()
})

async function peerAt(offsetMs: number) {
  const server = createServer((request, response) => {
    if (request.url === timePath) response.end(JSON.stringify({ time: Date.now() + offsetMs }))
    else response.writeHead(404).end('{}')
  })
  servers.push(server)
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  return { ip: '127.0.0.1', port: (server.address() as { port: number }).port }
}

test('gives average and median of the peers that answer, and the names of those that do not', async () => {
  const peers = await Promise.all([peerAt(0), peerAt(0), peerAt(-30_000)])
  const silent = { ip: '127.0.0.1', port: await freePort() }
  const clocks = await askPeerClocks([...peers, silent], asker)
  expect(clocks.answered).toBe(3)
  expect(clocks.silent).toEqual([`127.0.0.1:${silent.port}`])
  // One wrong clock moves the average by 10 s and does not affect the median.
  expect(Math.abs(clocks.averageOffsetMs - 10_000)).toBeLessThan(900)
  expect(Math.abs(clocks.medianOffsetMs)).toBeLessThan(900)
})

test('for an even number of peers the median is the mean of the two in the middle', async () => {
  const peers = await Promise.all([peerAt(0), peerAt(-20_000)])
  const clocks = await askPeerClocks(peers, asker)
  expect(Math.abs(clocks.medianOffsetMs - 10_000)).toBeLessThan(900)
})
