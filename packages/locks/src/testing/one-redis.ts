import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, afterEach, beforeAll } from 'vitest'
import { Locks, type LocksOptions } from '../index.ts'

/** What the tests of a file share. */
export interface OneRedis {
  readonly server: RedisServer
  readonly client: Ioredis
  /** A separate instance of locks, closed after the test. */
  open(options?: LocksOptions): Locks
  /** A name that no other test uses. */
  freshName(): string
}

/** A Redis for the tests of a file; call it at the top. Its result can be used within tests. */
export function oneRedis(): OneRedis {
  let server: RedisServer
  let client: Ioredis
  let names = 0
  const opened: Locks[] = []
  beforeAll(async () => {
    server = await startRedis()
    client = new Ioredis(server.port)
  })
  afterEach(async () => {
    await Promise.all(opened.splice(0).map((locks) => locks.close()))
  })
  afterAll(async () => {
    client.disconnect()
    await server.stop()
  })
  return {
    get server() {
      return server
    },
    get client() {
      return client
    },
    open(options = {}) {
      const locks = new Locks(client, options)
      opened.push(locks)
      return locks
    },
    freshName: () => `lock ${++names}`,
  }
}
