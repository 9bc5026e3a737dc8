import { parseRedisUrls } from '@firebreak/core/resp'
import { expect, test } from 'vitest'
import { snippetOf } from './snippet.ts'

const hub = 'http://127.0.0.1:7070'
const of = (url: string, isCluster = false) => snippetOf({ url, targets: parseRedisUrls(url), isCluster }, hub)

test('a Redis without a password is named as it is', () => {
  expect(of('redis://10.0.0.5:6379/2')).toBe(`import { protect } from 'firebreak'
import { Redis } from 'ioredis'

const redis = protect(new Redis('redis://10.0.0.5:6379/2'), {
  hubs: ['http://127.0.0.1:7070'],
  serviceId: 'shop',
})
`)
})

test('a password is read from the environment, and never shown', () => {
  const single = of('redis://app:hidden@10.0.0.5:6379')
  expect(single).toContain('// REDIS_URL: redis://app:PASSWORD@10.0.0.5:6379\n')
  expect(single).toContain('protect(new Redis(process.env.REDIS_URL), {')
  const socket = of('unix://:hidden@/run/redis.sock?db=1')
  expect(socket).toContain("new Redis({ path: '/run/redis.sock', password: process.env.REDIS_PASSWORD, db: 1 })")
  const cluster = of('rediss://app:hidden@10.0.0.1:7000,10.0.0.2:7000', true)
  expect(cluster).toContain("new URL(process.env.REDIS_URL.split(',')[0])")
  expect(cluster).toContain('{ redisOptions: { username, password: decodeURIComponent(password), tls: {} } }')
  for (const code of [single, socket, cluster]) expect(code).not.toContain('hidden')
})

test('the nodes of a cluster become a Cluster', () => {
  const code = of('redis://10.0.0.1:7000,10.0.0.2:7001', true)
  expect(code).toContain("import { Cluster } from 'ioredis'")
  expect(code).toContain("protect(new Cluster([{ host: '10.0.0.1', port: 7000 }, { host: '10.0.0.2', port: 7001 }]), {")
})
