import { createHash } from 'node:crypto'
import { expect, test } from 'vitest'
import { RedisLinkError, type RedisLinkOptions } from './redis-link.ts'
import { SimulatedRedis, type SimulatedScript } from './simulated-redis.ts'
import { SimulatedWorld } from './simulated-world.ts'
import { VirtualNetwork, type VirtualNetworkOptions } from './virtual-network.ts'
import { VirtualValkey } from './virtual-valkey.ts'

const address = 'redis-1:6379'

function script(source: string): SimulatedScript {
  return { name: 'test', source, sha1: createHash('sha1').update(source).digest('hex') }
}

function build(seed: number, options: VirtualNetworkOptions = {}) {
  const world = new SimulatedWorld({ seed, maxLogLines: 100_000 })
  const network = new VirtualNetwork(world, options)
  const valkey = new VirtualValkey(world, 'redis-1').listen(network, address)
  const app = world.process('app-1')
  const client = (clientOptions?: RedisLinkOptions) => new SimulatedRedis(app, network, address, clientOptions)
  return { world, network, valkey, app, client, redis: client() }
}

test('commands, scripts, pipelines and errors come through as from a real client', async () => {
  const { world, redis } = build(1)
  expect(await world.finish(redis.send(['SET', 'k', 'v']))).toBe('OK')
  expect(await world.finish(redis.send(['GET', 'k']))).toBe('v')
  expect(await world.finish(redis.send(['GET', 'k'], { asBytes: true }))).toEqual(new Uint8Array([0x76]))
  const increment = script("return {redis.call('INCR', KEYS[1]), ARGV[1]}")
  const both = Promise.all([redis.run(increment, ['n'], ['a']), redis.run(increment, ['n'], ['b'])])
  expect(await world.finish(both)).toEqual([
    [1, 'a'],
    [2, 'b'],
  ])
  await expect(world.finish(redis.send(['INCR', 'k']))).rejects.toThrow('ERR value is not an integer')
  const outcomes = await world.finish(
    redis.pipeline([
      ['SET', 'p', '1'],
      ['LPUSH', 'p', '1'],
      ['INCR', 'p'],
    ]),
  )
  expect(outcomes.map((outcome) => ('reply' in outcome ? outcome.reply : outcome.error.name))).toEqual([
    'OK',
    'ReplyError',
    2,
  ])
  const [node] = await redis.masters()
  expect([node!.address, await world.finish(node!.send(['DBSIZE']))]).toEqual([address, 3])
})

test('time is virtual: a key of an hour expires in an hour of the world', async () => {
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

test('messages reach a subscriber, and again after its connection was cut', async () => {
  const { world, network, redis } = build(3)
  const subscriber = await redis.subscriber()
  const seen: string[] = []
  let restored = 0
  subscriber.onReconnect(() => restored++)
  await world.finish(subscriber.subscribe('news', (message) => seen.push(message)))
  await world.finish(redis.send(['PUBLISH', 'news', 'one']))
  network.cut('*')
  await world.run(2000)
  expect(restored).toBe(1)
  await world.finish(redis.send(['PUBLISH', 'news', 'two']))
  await world.run(10)
  expect(seen).toEqual(['one', 'two'])
})

test('a lost connection means that the command may have happened; a resending client sends it again', async () => {
  const outcome = async (resends: boolean, seed: number) => {
    const { world, network, valkey, client } = build(seed)
    const redis = client({ resends })
    await world.run(10)
    const call = redis.send(['INCR', 'n']).then(
      () => 'done',
      (error: RedisLinkError) => (error.mayHaveHappened ? 'may have happened' : 'did not happen'),
    )
    await world.run(seed % 2 === 0 ? 0.04 : 0.6)
    network.cut('app-1')
    return `${await world.finish(call)}: ${valkey.ask('GET', 'n')}`
  }
  const seen = new Set<string>()
  for (let seed = 0; seed < 20; seed++) seen.add(await outcome(false, seed))
  expect([...seen].sort()).toEqual(['done: 1', 'may have happened: 1', 'may have happened: null'])
  for (let seed = 0; seed < 20; seed++) seen.add(await outcome(true, seed))
  expect([...seen]).toContain('done: 2')
})

test('a black hole is met by the deadline, and what was under way arrives when it ends', async () => {
  const { world, network, valkey, client } = build(5)
  const redis = client({ commandTimeoutMs: 300 })
  await world.run(10)
  const end = network.faults['blackHole']!({ atMs: 0, kind: 'blackHole', target: 'redis-1' }, world.chance)
  const before = world.elapsedMs
  const call = redis.send(['INCR', 'n'])
  await expect(world.finish(call)).rejects.toMatchObject({ mayHaveHappened: true, message: 'no reply within 300 ms' })
  expect(world.elapsedMs - before).toBe(300)
  await expect(world.finish(redis.send(['INCR', 'n']))).rejects.toMatchObject({ mayHaveHappened: false })
  expect(valkey.ask('GET', 'n')).toBe(null)
  end!()
  await world.run(2000)
  // Nobody waits any more, and yet it happens: this is what a retry without an id charges twice.
  expect(valkey.ask('GET', 'n')).toBe('1')
  expect(await world.finish(redis.send(['INCR', 'n']))).toBe(2)
})

test('a connection that died without a word is noticed by the deadline and opened again', async () => {
  const { world, network, client } = build(6)
  const redis = client({ commandTimeoutMs: 200 })
  let reconnects = 0
  redis.onReconnect(() => reconnects++)
  await world.finish(redis.send(['PING']))
  network.loseSilently('app-1')
  await expect(world.finish(redis.send(['PING']))).rejects.toThrow(RedisLinkError)
  expect(await world.finish(redis.send(['PING']))).toBe('PONG')
  expect(reconnects).toBe(1)
})

test('an older picture put back loses the writes since, ends connections and forgets scripts', async () => {
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

test('a picture goes into another server, as to a replica that is promoted', async () => {
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

test('killed it refuses, started again it holds everything or nothing; frozen it answers later', async () => {
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

test('passwords and ACLs are the server’s own', async () => {
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
