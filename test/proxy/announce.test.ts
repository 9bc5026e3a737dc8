import { join } from 'node:path'
import { temporaryFolder } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { slotsOf } from './fake-redis.ts'
import { ProxyStage } from './proxy-stage.ts'
import { RawClient } from './raw-client.ts'

let stage: ProxyStage
beforeAll(async () => {
  stage = await ProxyStage.open()
})
afterAll(() => stage.close())
afterEach(() => stage.clear())

/** The address that a client is told which has connected there. */
async function toldAt(place: { host: string; port: number } | { path: string }): Promise<string> {
  const client = await RawClient.connect(place)
  stage.onClear(() => client.close())
  const slots = /\*4\r\n\$\d+\r\n(.*)\r\n:(\d+)\r\n\$40\r\n(\w+)/.exec(await client.ask('CLUSTER', 'SLOTS'))!
  const [, host, port, id] = slots
  const nodes = await client.ask('CLUSTER', 'NODES')
  expect(nodes).toContain(`${id} ${host}:${port}@${Number(port) + 10_000} myself,master`)
  return `${host}:${port}`
}

describe.each(['net', 'raw'] as const)('over %s', (transport) => {
  test('a proxy that listens everywhere tells each client the address that it has reached', async () => {
    const { port } = await stage.start({ host: '0.0.0.0', allowAnyone: true, asCluster: true, transport })
    expect(await toldAt({ host: '127.0.0.1', port })).toBe(`127.0.0.1:${port}`)
    expect(await toldAt({ host: '127.0.0.2', port })).toBe(`127.0.0.2:${port}`)
  })

  test('so does one that listens on both protocols, in the words of the older', async () => {
    const { port } = await stage.start({ host: '::', allowAnyone: true, asCluster: true, transport })
    expect(await toldAt({ host: '127.0.0.2', port })).toBe(`127.0.0.2:${port}`)
    expect(await toldAt({ host: '::1', port })).toBe(`::1:${port}`)
  })
})

test('so does one before a cluster', async () => {
  const redis = await stage.fake(({ 0: word }) => (word === 'CLUSTER' ? slotsOf([redis.port]) : '+PONG\r\n'))
  const { port } = await stage.start({
    upstream: `127.0.0.1:${redis.port}`,
    mode: 'cluster',
    host: '0.0.0.0',
    allowAnyone: true,
  })
  expect(await toldAt({ host: '127.0.0.2', port })).toBe(`127.0.0.2:${port}`)
})

test('what is to be announced wins, for all', async () => {
  const announce = { host: 'redis.example', port: 7000 }
  const { port } = await stage.start({ host: '0.0.0.0', allowAnyone: true, asCluster: true, announce })
  expect(await toldAt({ host: '127.0.0.1', port })).toBe('redis.example:7000')
})

test('a unix socket has no address to tell: the client stays where it is', async () => {
  const path = join(temporaryFolder('proxy'), 'proxy.sock')
  await stage.start({ path, asCluster: true })
  expect(await toldAt({ path })).toBe(':0')
})
