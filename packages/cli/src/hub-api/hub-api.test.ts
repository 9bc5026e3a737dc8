import { createServer } from 'node:http'
import { startRedis } from '@firebreak/testkit'
import { expect, test } from 'vitest'
import { HubApi } from './hub-api.ts'

test.each([
  [200, 'text/html', '<html></html>', '200 OK, text/html'],
  [404, 'text/html; charset=utf-8', 'no such page', '404 Not Found, text/html'],
  [502, 'text/plain', 'Bad gateway', '502 Bad Gateway, text/plain'],
])('another HTTP server is told from a hub: %i %s', async (status, type, body, what) => {
  const server = createServer((_, response) => response.writeHead(status, { 'content-type': type }).end(body))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  await expect(new HubApi([url]).call('GET', '/v1/reports')).rejects.toThrow(
    `what answers at ${url} is not a hub's API (${what}); name the hub's own address`,
  )
  server.close()
})

test('a Redis under the address of a hub is told from one that is away', async () => {
  const redis = await startRedis()
  const url = `http://127.0.0.1:${redis.port}`
  await expect(new HubApi([url]).call('GET', '/v1/keys')).rejects.toThrow(
    `no hub answers at ${url}: the server there closed the connection; write https:// if your hub uses TLS, and check the port: a hub has 7070 by default, Redis 6379`,
  )
  await redis.stop()
})
