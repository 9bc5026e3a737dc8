import { type RedisServer, startRedis } from '@firebreak/testkit'
import { Redis as Ioredis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { Locks } from '../index.ts'

let server: RedisServer
let client: Ioredis
let locks: Locks
beforeAll(async () => {
  server = await startRedis()
  client = new Ioredis(server.port)
  locks = new Locks(client)
})
afterAll(async () => {
  await locks.close()
  client.disconnect()
  await server.stop()
})

const take = (name: string) => locks.withLock(name, ({ token }) => token)

describe('fencing token', () => {
  test('grows with every acquisition, across epochs too, and is a safe integer', async () => {
    let last = 0
    for (let round = 0; round < 200; round++) {
      // The counter of an epoch expires after a second; this test makes it sooner.
      if (round % 20 === 0) await client.del('firebreak_lock_token:{grows}')
      const token = await take('grows')
      expect(token).toBeGreaterThan(last)
      expect(Number.isSafeInteger(token)).toBe(true)
      last = token
    }
  })

  test('starts at Redis’ clock, so that an emptied Redis continues above what it issued', async () => {
    let last = 0
    for (let round = 0; round < 20; round++) {
      const token = await take('emptied')
      expect(token).toBeGreaterThan(last)
      last = token
      await client.flushall()
    }
    const [seconds, micros] = await client.time()
    expect(last).toBeLessThan(Number(seconds) * 1e6 + Number(micros))
  })

  test('does not follow a clock that was set back, but continues after the last epoch', async () => {
    const ahead = (Date.now() + 3_600_000) * 1000
    await client.set('firebreak_lock_epoch:{stepped}', ahead)
    expect(await take('stepped')).toBe(ahead)
    expect(await take('stepped')).toBe(ahead + 1)
    expect(await client.pttl('firebreak_lock_token:{stepped}')).toBeGreaterThan(0)
    expect(await client.pttl('firebreak_lock_epoch:{stepped}')).toBeGreaterThan(3_599_000)
  })

  test('does not fall below what this process saw before a reconnect, though Redis forgot and its clock went back', async () => {
    const ahead = (Date.now() + 3_600_000) * 1000
    await client.set('firebreak_lock_epoch:{forgotten}', ahead)
    const token = await take('forgotten')
    const back = new Promise<void>((resolve) => client.once('ready', () => resolve()))
    await server.cli('FLUSHALL')
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await back
    expect(await take('forgotten')).toBeGreaterThan(token)
  })

  test('nor where another process has started counting over in between', async () => {
    const ahead = (Date.now() + 3_600_000) * 1000
    await client.set('firebreak_lock_epoch:{recounted}', ahead)
    const token = await take('recounted')
    const back = new Promise<void>((resolve) => client.once('ready', () => resolve()))
    await server.cli('FLUSHALL')
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal')
    await back
    const newcomer = new Locks(client)
    expect(await newcomer.withLock('recounted', (handle) => handle.token)).toBeLessThan(token)
    await newcomer.close()
    expect(await take('recounted')).toBeGreaterThan(token)
  })
})
