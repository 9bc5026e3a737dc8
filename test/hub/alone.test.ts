import { execFile } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { peek, protect, shieldOf } from '@firebreak/client'
import { systemRuntime } from '@firebreak/core'
import { parseRule } from '@firebreak/core/rules'
import { type Hub, startHub } from '@firebreak/hub'
import { FaultProxy, type RedisServer, sourceArgs, startRedis, waitFor } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import { afterEach, beforeEach, expect, test } from 'vitest'
import { WireSensor } from './wire-sensor.ts'

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
  // A lease that a busy machine does not end: only what the hubs do may flush.
  protect(client, { ...options, leaseMs: 10_000, onWarning: () => {} })
  await waitFor(() => sensorsOf(cut) === 1)
  await client.set('hot-1', 'a')
  await cut.core.putRule(parseRule({ id: 'hot', prefix: 'hot-', threshold: 10, minHoldMs: 60_000 }), 'ann')
  await waitFor(async () => (await client.get('hot-1')) === 'a' && peek(client, 'hot-1') !== undefined)
  await waitFor(() => other.core.delivery.size === 1)
  let flushes = 0
  const timer = setInterval(() => {
    if (peek(client, 'hot-1') === undefined) flushes++
  }, 1)
  // Black hole: nothing is closed, nothing is answered.
  proxy.faults.isBlackHole = true
  const since = performance.now()
  await waitFor(() => sensorsOf(other) === 1 && shieldOf(client)!.isConnected)
  expect(performance.now() - since).toBeLessThan(5000)
  // The lane of the other hub is another, and says nothing of what a watcher of Redis guards.
  const { heartbeatMs } = other.core.options
  const movedAt = performance.now()
  await waitFor(() => performance.now() - movedAt > 2 * heartbeatMs)
  clearInterval(timer)
  expect(flushes).toBe(0)
  const plain = client.duplicate()
  await plain.set('hot-1', 'b')
  await waitFor(async () => (await client.get('hot-1')) === 'b')
  plain.disconnect()
  expect((await fetch(`${cut.url}/readyz`)).status).toBe(200)
  expect(cut.core.alarms.list().map(({ id }) => id)).toContain('board')
}, 30_000)

test('a hub that is cut off and did not hear of a thrown switch does not undo it', async () => {
  const [cut, other] = hubs as [Hub, Hub]
  const runtime = { ...systemRuntime, random: () => 0 }
  const options = { hubs: [other.url, cut.url], serviceId: 'shop', tableFile: false as const, runtime }
  protect(client, { ...options, onWarning: () => {} })
  await waitFor(() => sensorsOf(other) === 1)
  proxy.faults.isBlackHole = true
  await waitFor(() => cut.core.keys.isAlone)
  await other.core.setOff(true, 'ann')
  await waitFor(() => shieldOf(client)!.isOff)
  hubs.splice(1, 1)
  await other.close()
  await waitFor(() => sensorsOf(cut) === 1)
  // The table and some heartbeats of a hub that says that it is on.
  const movedAt = performance.now()
  await waitFor(() => performance.now() - movedAt > 2 * cut.core.options.heartbeatMs)
  expect([cut.core.delivery.isOff, shieldOf(client)!.isOff]).toEqual([false, true])
  proxy.faults.isBlackHole = false
  proxy.cut()
  await waitFor(() => cut.core.delivery.isOff && !cut.core.keys.isAlone)
  await cut.core.setOff(false, 'ann')
  await waitFor(() => !shieldOf(client)!.isOff)
}, 30_000)

test('firebreak off --hub a,b tells each hub and prints which hubs and sensors confirmed', async () => {
  const gone = hubs.pop()!
  await gone.close()
  const [hub] = hubs as [Hub]
  protect(client, { hubs: [hub.url], serviceId: 'shop', tableFile: false, onWarning: () => {} })
  await waitFor(() => sensorsOf(hub) === 1)
  const { stdout, code } = await runOff([hub.url, gone.url])
  expect(stdout).toContain(`confirmed      ${hub.url}  (1 of 1 sensors)`)
  expect(stdout).toMatch(/^ {2}confirmed {6}shop \S+ \S+$/m)
  expect(stdout).toContain(`not confirmed  ${gone.url}`)
  expect(stdout).toContain('1 of 2 hubs confirmed, 1 of 1 sensors')
  expect(code).toBe(1)
  expect(hub.core.delivery.isOff).toBe(true)
  expect(shieldOf(client)!.isOff).toBe(true)
}, 30_000)

test('firebreak off names a sensor that does not follow', async () => {
  const [hub, other] = hubs as [Hub, Hub]
  // It takes the table and says nothing.
  const sensor = new WireSensor(hub.url, 1)
  await waitFor(() => sensorsOf(hub) === 1)
  const { stdout, code } = await runOff([hub.url, other.url])
  expect(stdout).toContain(`confirmed      ${hub.url}  (0 of 1 sensors)\n  not confirmed  shop host-1 instance-1`)
  expect(stdout).toContain('2 of 2 hubs confirmed, 0 of 1 sensors')
  expect(code).toBe(1)
  sensor.close()
}, 30_000)

function runOff(urls: readonly string[]): Promise<{ stdout: string; code: unknown }> {
  return new Promise((resolve) => {
    execFile(process.execPath, [...sourceArgs, main, 'off', '--hub', urls.join()], (error, text) =>
      resolve({ stdout: text, code: error?.code ?? 0 }),
    )
  })
}
