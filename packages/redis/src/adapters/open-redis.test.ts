import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { freePort, startCluster, startRedis } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { defineScript } from '../script/redis-script.ts'
import { ioredisOptions } from './ioredis-options.ts'
import { openRedis } from './open-redis.ts'

test('an address means the same to ioredis as everywhere else', () => {
  expect(ioredisOptions('redis://127.0.0.1:7000/3')).toEqual({ host: '127.0.0.1', port: 7000, db: 3 })
  expect(ioredisOptions('rediss://ann:p%40ss@cache:7000')).toEqual({
    host: 'cache',
    port: 7000,
    username: 'ann',
    password: 'p@ss',
    tls: {},
  })
  expect(ioredisOptions('unix:///run/redis.sock?db=2')).toEqual({ path: '/run/redis.sock', db: 2 })
  const tls = { ca: 'CA', certificate: 'C', key: 'K', serverName: 'cache', isVerified: false }
  expect(ioredisOptions({ host: 'a', port: 1, tls }).tls).toEqual({
    ca: 'CA',
    cert: 'C',
    key: 'K',
    servername: 'cache',
    rejectUnauthorized: false,
  })
})

test('the database of a URL is used, unless another one is given', async () => {
  const server = await startRedis()
  const third = await openRedis(`${server.url}/3`)
  await third.redis.send(['SET', 'where', 'three'])
  const asked = await openRedis(server.url, 3)
  expect(await asked.redis.send(['GET', 'where'])).toBe('three')
  third.close()
  asked.close()
  await server.stop()
})

test('a server that cannot be reached is named, with the reason', async () => {
  const port = await freePort()
  const { redis, close } = await openRedis(`redis://127.0.0.1:${port}`)
  const address = `127.0.0.1:${port}`
  const unreachable = {
    code: 'FB_REDIS_CONNECT',
    address,
    message: expect.stringContaining(`${address}: connect ECONNREFUSED`),
  }
  await expect(redis.send(['PING'])).rejects.toMatchObject(unreachable)
  await expect(redis.run(defineScript('one', 'return 1'), ['k'], [])).rejects.toMatchObject(unreachable)
  const [master] = await redis.masters()
  await expect(master!.send(['PING'])).rejects.toMatchObject(unreachable)
  close()
})

test('user and password of the first URL are sent to every node of a cluster', async () => {
  const cluster = await startCluster()
  for (const node of cluster.nodes) await node.cli('ACL', 'SETUSER', 'ann', 'on', '>secret', '~*', '&*', '+@all')
  const [address] = cluster.addresses
  const { redis, close } = await openRedis([`redis://ann:secret@${address!.host}:${address!.port}`])
  for (const key of ['a', 'b', 'c', 'd', 'e', 'f']) await redis.send(['SET', key, 'v'])
  const users = await Promise.all(cluster.nodes.map((node) => node.cli('CLIENT', 'LIST')))
  expect(users.every((list) => list.includes('user=ann'))).toBe(true)
  close()
  await expect(openRedis([`redis://${address!.host}:${address!.port}/2`])).rejects.toThrow(/Redis Cluster has no other/)
  await cluster.stop()
})

test('TLS of a cluster also applies to its nodes', async () => {
  const server = createServer().listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { close } = await openRedis([`rediss://127.0.0.1:${(server.address() as AddressInfo).port}`])
  const [socket] = (await once(server, 'connection')) as [Socket]
  const [firstBytes] = (await once(socket, 'data')) as [Buffer]
  const handshake = 0x16
  expect(firstBytes[0]).toBe(handshake)
  close()
  socket.destroy()
  server.close()
})
