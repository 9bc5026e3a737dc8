import { expect, test } from 'vitest'
import { RedisLinkError } from './redis-link.ts'
import { SimulatedRedis } from './simulated-redis.ts'
import { build, script } from './testing/small-world.ts'
import { VirtualValkey } from './virtual-valkey.ts'

test('time is virtual: a key with a TTL of an hour expires after an hour of virtual time', async () => {
  const { world, valkey, redis } = build(1)
  await world.finish(redis.send(['SET', 'k', 'v', 'PX', 3_600_000]))
  const [seconds] = (await world.finish(redis.send(['TIME']))) as string[]
  expect(Number(seconds)).toBe(Math.floor(world.nowMs / 1000))
  await world.run(3_599_000)
  expect(await world.finish(redis.send(['GET', 'k']))).toBe('v')
  await world.run(1000)
  expect(await world.finish(redis.send(['GET', 'k']))).toBe(null)
  valkey.process.stepWallClock(50_000)
  const [stepped] = (await world.finish(redis.send(['TIME']))) as string[]
  expect(Number(stepped)).toBe(Math.floor((world.nowMs + 50_000) / 1000))
})

test('restoring an older snapshot loses later writes, ends connections and forgets scripts', async () => {
  const { world, valkey, redis } = build(7)
  let reconnects = 0
  redis.onReconnect(() => reconnects++)
  const increment = script("return redis.call('INCR', KEYS[1])")
  await world.finish(redis.run(increment, ['n'], []))
  const picture = valkey.picture()
  await world.finish(redis.run(increment, ['n'], []))
  expect(valkey.ask('GET', 'n')).toBe('2')
  valkey.putBack(picture)
  await world.run(1000)
  expect(reconnects).toBe(1)
  expect(valkey.ask('GET', 'n')).toBe('1')
  await expect(world.finish(redis.send(['EVALSHA', increment.sha1, 1, 'n']))).rejects.toThrow('NOSCRIPT')
  expect(await world.finish(redis.run(increment, ['n'], []))).toBe(2)
  expect(String(valkey.ask('CLIENT', 'LIST')).split('\n').filter(Boolean)).toHaveLength(2)
})

test('a snapshot can be loaded by another server, as by a replica that is promoted', async () => {
  const { world, network, valkey, app, redis } = build(8)
  const replica = new VirtualValkey(world, 'redis-2').listen(network, 'redis-2:6379')
  await world.finish(redis.send(['SET', 'big', 'x'.repeat(6_000_000)]))
  const picture = valkey.picture()
  await world.finish(redis.send(['SET', 'late', '1']))
  valkey.kill()
  replica.putBack(picture)
  const other = new SimulatedRedis(app, network, 'redis-2:6379')
  expect(await world.finish(other.send(['STRLEN', 'big']))).toBe(6_000_000)
  expect(await world.finish(other.send(['GET', 'late']))).toBe(null)
  expect(await world.finish(other.send(['SET', 'more', 'y'.repeat(1_000_000)]))).toBe('OK')
})

test('killed it refuses connections, restarted it has everything or nothing; paused it answers later', async () => {
  const { world, valkey, client } = build(9)
  const redis = client({ commandTimeoutMs: 1000, maxReconnectMs: 100 })
  await world.finish(redis.send(['SET', 'k', 'v']))
  valkey.kill()
  await expect(world.finish(redis.send(['GET', 'k']))).rejects.toThrow(RedisLinkError)
  valkey.start()
  expect(await world.finish(redis.send(['GET', 'k']))).toBe('v')
  valkey.process.freeze()
  const waiting = redis.send(['GET', 'k'])
  await world.run(500)
  valkey.process.thaw()
  expect(await world.finish(waiting)).toBe('v')
  valkey.kill()
  valkey.start('nothing')
  await world.run(1000)
  expect(await world.finish(redis.send(['GET', 'k']))).toBe(null)
  await expect(world.finish(redis.send(['SHUTDOWN', 'NOSAVE']))).rejects.toThrow('connection lost')
  expect(valkey.isRunning).toBe(false)
  valkey.start()
  await world.run(1000)
  expect(await world.finish(redis.send(['SET', 'k', 'again']))).toBe('OK')
})

test('passwords and ACLs are checked by the server itself', async () => {
  const { world, valkey, client } = build(10)
  valkey.ask('ACL', 'SETUSER', 'app', 'on', '>secret', '~app:*', '+@all')
  valkey.ask('CONFIG', 'SET', 'requirepass', 'other')
  await expect(world.finish(client().send(['GET', 'app:1']))).rejects.toThrow('NOAUTH')
  const redis = client({ username: 'app', password: 'secret' })
  expect(await world.finish(redis.send(['SET', 'app:1', 'v']))).toBe('OK')
  await expect(world.finish(redis.send(['GET', 'other']))).rejects.toThrow('NOPERM')
  const subscriber = await client({ password: 'other' }).subscriber()
  await world.finish(subscriber.subscribe('c', () => {}))
  expect(valkey.ask('GET', 'app:1')).toBe('v')
})

test('the same seed gives the same log to the byte: scripts, TTL, tracking, faults; another seed another one', async () => {
  const play = async (seed: number) => {
    const { world, network, valkey, client, redis } = build(seed)
    const tracked = client({
      onPush: (items) => world.note(`push ${items.map(String).join(' ')}`),
    })
    tracked.onReconnect(() => void tracked.send(['CLIENT', 'TRACKING', 'ON']).catch(() => {}))
    await world.finish(tracked.send(['CLIENT', 'TRACKING', 'ON']))
    const draw = world.chance.fork('workload')
    const random = script("redis.call('SET', KEYS[1], math.random(1000000)); return redis.call('TIME')")
    for (let round = 0; round < 150; round++) {
      const key = `k${draw.below(5)}`
      const note = (reply: unknown): void => world.note(`${key} → ${JSON.stringify(reply)}`)
      const noteError = (error: Error): void => world.note(`${key} failed: ${error.message}`)
      if (round === 100) network.cut('*')
      if (round === 120) valkey.putBack(valkey.picture())
      void tracked.send(['GET', key]).then(note, noteError)
      void redis.run(random, [key], []).then(note, noteError)
      void redis.send(['SET', `${key}:ttl`, round, 'PX', 1 + draw.below(50)]).then(note, noteError)
      void redis.send(['RANDOMKEY']).then(note, noteError)
      await world.run(draw.between(0.1, 20))
    }
    for (const line of world.log.lines) if (line.includes('push invalidate')) break
    return { digest: world.log.digest, lines: world.log.lines, state: String(valkey.ask('INFO', 'server')) }
  }
  const first = await play(11)
  const second = await play(11)
  expect(second.lines).toEqual(first.lines)
  expect(second.digest).toBe(first.digest)
  expect(first.lines.filter((line) => line.includes('push invalidate')).length).toBeGreaterThan(20)
  const other = await play(12)
  expect(other.digest).not.toBe(first.digest)
  const runId = (state: string): string | undefined => state.match(/run_id:(\w+)/)?.[1]
  expect(runId(second.state)).toBe(runId(first.state))
  expect(runId(other.state)).not.toBe(runId(first.state))
})
