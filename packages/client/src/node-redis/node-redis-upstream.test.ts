import { createClient, createClientPool } from 'redis'
import { expect, test } from 'vitest'
import type { NodeRedisClient } from './node-redis-client.ts'
import { nodeRedisClusterId } from './node-redis-upstream.ts'

const nameOf = (client: object) => nodeRedisClusterId(client as unknown as NodeRedisClient)

test('a pool has the name of a client with the same options', () => {
  const socket = { host: 'redis.example', port: 7000 }
  expect(nameOf(createClientPool({ socket }))).toBe(nameOf(createClient({ socket })))
  expect(nameOf(createClientPool({ socket: { port: 7000 } }))).toBe('localhost:7000')
  expect(nameOf(createClient({ url: 'redis://u:p@redis.example:7000/2' }).createPool())).toBe('redis.example:7000')
})

test('a pool without a server address still has a name', () => {
  expect(nameOf(createClientPool({ url: 'redis://redis.example' }))).toBe('pool')
})
