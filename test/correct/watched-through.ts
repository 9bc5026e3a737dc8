import type { ProtectOptions } from '@firebreak/client'
import type { FaultProxy } from '@firebreak/testkit'
import { Redis } from 'ioredis'
import type { Fixture } from '../client/fixture.ts'

/** A protected client whose watcher goes through the proxy while its own connection goes straight to the server. */
export async function watchedThrough(
  fixture: Fixture,
  serverPort: number,
  proxy: FaultProxy,
  options: ProtectOptions = {},
): Promise<Redis> {
  const redis = new Redis(serverPort)
  redis.on('error', () => {})
  await new Promise((resolve) => redis.once('ready', resolve))
  // The shield asks where the server is when it opens its own connection.
  Object.assign(redis.options, { port: proxy.port })
  return fixture.adopt(redis, options)
}
