import { expect, test } from 'vitest'
import { RedisLinkError } from './redis-link.ts'
import { address, build, script } from './testing/small-world.ts'

test('commands, scripts, pipelines and errors work as from a real client', async () => {
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

test('the deadline handles a black hole, and bytes in flight arrive when the hole ends', async () => {
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
  // Nobody waits any more, but it still happens: a retry without an id would charge twice.
  expect(valkey.ask('GET', 'n')).toBe('1')
  expect(await world.finish(redis.send(['INCR', 'n']))).toBe(2)
})

test('a connection that died silently is noticed by the deadline and opened again', async () => {
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
