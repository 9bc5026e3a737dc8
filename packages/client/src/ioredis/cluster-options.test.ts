import { expect, test } from 'vitest'
import { connectionOptions, nodeOptions } from './cluster-options.ts'
import type { IoredisClient } from './ioredis-client.ts'

const cluster = (fields: object) => ({ isCluster: true, options: {}, ...fields }) as unknown as IoredisClient

test('a single Redis has one connection', () => {
  const options = { host: 'a', username: 'ann' }
  expect(connectionOptions({ options } as unknown as IoredisClient)).toEqual([options])
})

test('before a cluster has connected, the options of its start nodes count, before redisOptions', () => {
  const client = cluster({
    options: { redisOptions: { username: 'all', password: 'p' } },
    startupNodes: [
      'redis://ann:p%40ss@a:7000?family=6',
      '[::1]:7001',
      { host: 'c', port: 7002, username: 'carl' },
      7003,
      '[not an address',
    ],
  })
  expect(connectionOptions(client)).toEqual([
    { username: 'ann', password: 'p@ss', host: 'a', port: 7000, family: '6' },
    { username: 'all', password: 'p', host: '::1', port: 7001 },
    { username: 'carl', password: 'p', host: 'c', port: 7002 },
    { username: 'all', password: 'p' },
    { username: 'all', password: 'p' },
  ])
})

test('once it has connected, the options of its connections count', () => {
  const nodes = [{ options: { host: 'a', port: 1, username: 'x' } }, { options: { host: 'b', port: 2, username: 'y' } }]
  const client = cluster({ nodes: () => nodes, startupNodes: ['redis://z@a:1'] })
  expect(connectionOptions(client).map(({ username }) => username)).toEqual(['x', 'y'])
  expect(nodeOptions(client, 'b:2').username).toBe('y')
  expect(nodeOptions(client, 'unknown:3').username).toBe('x')
})

test('a cluster without any node uses redisOptions', () => {
  expect(connectionOptions(cluster({ options: { redisOptions: { username: 'all' } } }))).toEqual([{ username: 'all' }])
  expect(connectionOptions(cluster({}))).toEqual([{}])
})
