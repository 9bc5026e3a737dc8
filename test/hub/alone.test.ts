import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { protect, shieldOf } from '@firebreak/client'
import { systemRuntime } from '@firebreak/core'
import { type Hub, startHub } from '@firebreak/hub'
import { FaultProxy, type RedisServer, sourceArgs, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
let server: RedisServer
let proxy: FaultProxy
let hubs: Hub[]
let client: Redis

beforeEach(async () => {
  server = await startRedis()
  proxy = await FaultProxy.start(server.port)
  const start = (port: number) => startHub({ storeUrl: `redis://127.0.0.1:${port}`, logLevel: 'silent' })
  hubs = [await start(proxy.port), await start(server.port)]
  client = new Redis(server.port)
})
afterEach(async () => {
  shieldOf(client)?.close()
  client.disconnect()
  await Promise.all(hubs.map((hub) => hub.close()))
  await proxy.close()
  await server.stop()
})

const sensorsOf = (hub: Hub) => hub.core.fleet.hosts.counts().connected

test('a hub that is cut off from its store says so, stays ready, and its sensors move to another within 5 s', async () => {
  const [cut, other] = hubs as [Hub, Hub]
  // The first of the list.
  const runtime = { ...systemRuntime, random: () => 0 }
  const options = { hubs: hubs.map(({ url }) => url), serviceId: 'shop', tableFile: false as const, runtime }
  protect(client, { ...options, onWarning: () => {} })
  await waitFor(() => sensorsOf(cut) === 1)
  // Black hole: nothing is closed, nothing is answered.
  proxy.faults.isBlackHole = true
  const since = performance.now()
  await waitFor(() => sensorsOf(other) === 1 && shieldOf(client)!.isConnected)
  expect(performance.now() - since).toBeLessThan(5000)
  expect((await fetch(`${cut.url}/readyz`)).status).toBe(200)
  expect(cut.core.alarms.list().map(({ id }) => id)).toContain('board')
}, 30_000)

test('firebreak off --hub a,b tells each hub and prints who confirmed', async () => {
  const gone = hubs.pop()!
  await gone.close()
  const urls = [hubs[0]!.url, gone.url].join()
  const { stdout, code } = await new Promise<{ stdout: string; code: unknown }>((resolve) => {
    execFile(process.execPath, [...sourceArgs, main, 'off', '--hub', urls], (error, text) =>
      resolve({ stdout: text, code: error?.code ?? 0 }),
    )
  })
  expect(stdout).toContain(`confirmed      ${hubs[0]!.url}  (0 sensors)`)
  expect(stdout).toContain(`not confirmed  ${gone.url}`)
  expect(stdout).toContain('1 of 2 hubs confirmed')
  expect(code).toBe(1)
  expect(hubs[0]!.core.delivery.isOff).toBe(true)
}, 30_000)
