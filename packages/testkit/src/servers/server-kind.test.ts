import { afterAll, beforeAll, expect, test } from 'vitest'
import { clusterPorts, type RedisServer, redisKind, startRedis } from './redis-server.ts'
import { type CapabilityName, capabilities, hasCapability, isAtLeast, parseServerKind } from './server-kind.ts'

test('the version line of either server is read, and anything else refused', () => {
  expect(parseServerKind('Redis server v=6.2.16 sha=0:0 malloc=libc')).toEqual({ name: 'redis', version: [6, 2, 16] })
  expect(parseServerKind('Valkey server v=8.0.1 sha=0:1')).toEqual({ name: 'valkey', version: [8, 0, 1] })
  expect(parseServerKind('Server v=7.2.7 sha=0:0')).toEqual({ name: 'valkey', version: [7, 2, 7] })
  expect(() => parseServerKind('memcached 1.6')).toThrow('no Redis and no Valkey')
})

test('versions are compared by number', () => {
  expect(isAtLeast({ name: 'redis', version: [7, 10, 0] }, [7, 2])).toBe(true)
  expect(isAtLeast({ name: 'redis', version: [6, 9, 9] }, [7, 0])).toBe(false)
  expect(hasCapability({ name: 'valkey', version: [8, 0, 1] }, 'slotStats')).toBe(true)
  expect(hasCapability({ name: 'redis', version: [7, 4, 1] }, 'slotStats')).toBe(false)
})

let server: RedisServer
let node: RedisServer
beforeAll(async () => {
  server = await startRedis()
  const [port, busPort] = await clusterPorts()
  const bus = busPort === undefined ? [] : ['--cluster-port', String(busPort)]
  node = await startRedis({ args: ['--cluster-enabled', 'yes', ...bus], port })
})
afterAll(async () => {
  await server.stop()
  await node.stop()
})

// Checked on the server of this run; `npm run test:servers` runs it on others.
test.each(Object.keys(capabilities) as CapabilityName[])(
  'the table of capabilities is right about %s',
  async (name) => {
    const { probe } = capabilities[name]
    const answer = await (probe[0] === 'CLUSTER' ? node : server).cli(...probe)
    const isUnknown = /^ERR (unknown|syntax error)/i.test(answer)
    expect({ isUnknown, answer }).toMatchObject({ isUnknown: !hasCapability(redisKind(), name) })
  },
)
