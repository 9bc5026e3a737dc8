import { keySlot } from '@firebreak/core/commands'
import { encodeReply, ReplyDecoder } from '@firebreak/core/resp'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { hasCapability, type RedisCluster, redisCli, redisKind, scale, startCluster, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { RawClient } from './raw-client.ts'

let cluster: RedisCluster
let proxy: FirebreakProxy
let client: RawClient

beforeAll(async () => {
  cluster = await startCluster({ masters: 3, replicas: 1, args: ['--repl-diskless-sync-delay', '0'] })
  // A replica that never had its master's data is never elected.
  await waitFor(async () => {
    const views = await Promise.all(cluster.nodes.map((node) => node.cli('INFO', 'replication')))
    return views.every((view) => view.includes('role:master') || view.includes('master_link_status:up'))
  })
  proxy = await startProxy({
    upstream: cluster.addresses.map(({ host, port }) => `${host}:${port}`).join(','),
    port: 0,
  })
})

afterAll(async () => {
  await client?.close()
  await proxy?.close()
  await cluster?.stop()
})

async function fresh(): Promise<RawClient> {
  await client?.close()
  client = await RawClient.connect(proxy.port)
  return client
}

function bulk(text: string): string {
  return Buffer.from(encodeReply(Buffer.from(text), 2)).toString('latin1')
}

/** Who has which slots in a reply to CLUSTER NODES. */
function slotsSeen(nodes: string): string {
  const rows = nodes
    .trim()
    .split('\n')
    .map((row) => row.split(' '))
  return rows
    .map((fields) => [fields[0], ...fields.slice(8)].join(' '))
    .sort()
    .join('\n')
}

const names = Array.from({ length: 60 }, (_, index) => `key-${index}`)

test('MSET, MGET, EXISTS, TOUCH, UNLINK and DEL over many slots answer as one Redis does', async () => {
  const redis = await fresh()
  expect(await redis.ask('MSET', ...names.flatMap((name) => [name, `v-${name}`]))).toBe('+OK\r\n')
  const values = names.map((name) => bulk(`v-${name}`)).join('')
  expect(await redis.ask('MGET', ...names, 'nothing', names[3]!)).toBe(`*62\r\n${values}$-1\r\n${bulk('v-key-3')}`)
  expect(await redis.ask('EXISTS', ...names, 'nothing', names[0]!)).toBe(':61\r\n')
  expect(await redis.ask('TOUCH', ...names, 'nothing')).toBe(':60\r\n')
  expect(await redis.ask('UNLINK', ...names.slice(0, 30))).toBe(':30\r\n')
  expect(await redis.ask('DEL', ...names)).toBe(':30\r\n')
  // A WRONGTYPE in one part is the error of the whole.
  await redis.ask('LPUSH', names[7]!, 'x')
  expect(await redis.ask('MGET', ...names)).toBe(`*60\r\n${'$-1\r\n'.repeat(60)}`)
  await redis.ask('DEL', names[7]!)
  expect(await redis.ask('MSET', 'a', '1', 'b')).toBe("-ERR wrong number of arguments for 'mset' command\r\n")
})

test('scripts and plain commands of one pipeline are carried out in their order', async () => {
  const redis = await fresh()
  const set = ['EVAL', "return redis.call('set', KEYS[1], ARGV[1])", '1', 'k']
  const get = ['EVAL', "return redis.call('get', KEYS[1])", '1', 'k']
  for (let round = 0; round < 20; round++) {
    const pipeline = [['SET', 'k', 'a'], get, [...set, 'b'], ['GET', 'k'], ['SET', 'k', 'c'], get, ['MGET', 'k', 'l']]
    redis.socket.cork()
    for (const words of pipeline) redis.send(...words)
    redis.socket.uncork()
    const replies: string[] = []
    for (const _ of pipeline) replies.push(await redis.next())
    const ok = '+OK\r\n'
    expect(replies).toEqual([ok, bulk('a'), ok, bulk('b'), ok, bulk('c'), `*2\r\n${bulk('c')}$-1\r\n`])
  }
  await redis.ask('DEL', 'k')
})

test('KEYS, SCAN, DBSIZE and FLUSHALL are over all nodes', async () => {
  const redis = await fresh()
  const count = scale(500, 20_000)
  for (let index = 0; index < count; index++) redis.send('SET', `all-${index}`, 'x')
  for (let index = 0; index < count; index++) expect(await redis.next()).toBe('+OK\r\n')
  expect(await redis.ask('DBSIZE')).toBe(`:${count}\r\n`)
  const decode = (reply: string) => {
    const decoder = new ReplyDecoder({ bulk: 'text' })
    decoder.feed(Buffer.from(reply, 'latin1'))
    return decoder.next()
  }
  const keys = decode(await redis.ask('KEYS', 'all-*')) as string[]
  expect(new Set(keys).size).toBe(count)
  expect(keys).toHaveLength(count)
  const seen = new Set<string>()
  let cursor = '0'
  do {
    const [next, some] = decode(await redis.ask('SCAN', cursor, 'COUNT', 100)) as [string, string[]]
    for (const key of some) seen.add(key)
    cursor = next
  } while (cursor !== '0')
  expect(seen.size).toBe(count)
  expect(await redis.ask('SCAN', 'x')).toBe('-ERR invalid cursor\r\n')
  expect(await redis.ask('KEYS', 'none-*')).toBe('*0\r\n')
  expect(await redis.ask('FLUSHALL')).toBe('+OK\r\n')
  expect(await redis.ask('DBSIZE')).toBe(':0\r\n')
})

test('few keys are found as on one Redis: SCAN in one call, RANDOMKEY wherever they are; ACL is for all nodes', async () => {
  const redis = await fresh()
  expect(await redis.ask('RANDOMKEY')).toBe('$-1\r\n')
  for (const name of names.slice(0, 9)) {
    await redis.ask('SET', name, 'v')
    expect(await redis.ask('RANDOMKEY')).toBe(bulk(name))
    expect(await redis.ask('SCAN', '0')).toBe(`*2\r\n${bulk('0')}*1\r\n${bulk(name)}`)
    await redis.ask('DEL', name)
  }
  await redis.ask('MSET', ...names.flatMap((name) => [name, 'v']))
  const seen = new Set<string>()
  for (let count = 0; count < 300; count++) seen.add(await redis.ask('RANDOMKEY'))
  // No node has more than half of them.
  expect(seen.size).toBeGreaterThan(names.length / 2)
  expect(await redis.ask('SCAN', '0', 'COUNT', '1')).not.toContain(`${bulk('0')}*`)
  expect(await redis.ask('ACL', 'SETUSER', 'somebody', 'on', '>pass', '~*', '+get')).toBe('+OK\r\n')
  const user = await fresh()
  expect(await user.ask('AUTH', 'somebody', 'pass')).toBe('+OK\r\n')
  for (const name of names) expect(await user.ask('GET', name)).toBe(bulk('v'))
  expect(await (await fresh()).ask('ACL', 'DELUSER', 'somebody')).toBe(':1\r\n')
})

test('a transaction is on the node of its first key, whatever stands before it', async () => {
  const redis = await fresh()
  for (const name of names.slice(0, 12)) {
    redis.send('MULTI')
    redis.send('PUBLISH', 'nowhere', 'x')
    redis.send('ECHO', name)
    redis.send('SET', name, 'v')
    redis.send('PING')
    redis.send('EXEC')
    const replies: string[] = []
    for (let count = 0; count < 6; count++) replies.push(await redis.next())
    const whole = `*4\r\n:0\r\n${bulk(name)}+OK\r\n+PONG\r\n`
    expect(replies).toEqual(['+OK\r\n', ...new Array(4).fill('+QUEUED\r\n'), whole])
  }
  const steps: [string, string | RegExp][] = [
    ['MULTI', '+OK\r\n'],
    ['PING', '+QUEUED\r\n'],
    ['EXEC', '*1\r\n+PONG\r\n'],
    ['MULTI', '+OK\r\n'],
    ['ECHO x', '+QUEUED\r\n'],
    ['DISCARD', '+OK\r\n'],
    ['EXEC', /^-ERR EXEC without MULTI/],
    ['MULTI', '+OK\r\n'],
    ['PING', '+QUEUED\r\n'],
    ['ECHO', /^-ERR wrong number/],
    ['EXEC', /^-EXECABORT/],
    ['MULTI', '+OK\r\n'],
    ['TIME', '+QUEUED\r\n'],
    ['RESET', '+RESET\r\n'],
    ['PING', '+PONG\r\n'],
  ]
  for (const [line, expected] of steps) {
    const reply = await redis.ask(...line.split(' '))
    if (typeof expected === 'string') expect(reply, line).toBe(expected)
    else expect(reply, line).toMatch(expected)
  }
})

test('a client that asked for its id may use transactions on every node', async () => {
  const redis = await fresh()
  expect(await redis.ask('CLIENT', 'ID')).toMatch(/^:\d+/)
  for (const name of names.slice(0, 10)) {
    expect(await redis.ask('WATCH', name)).toBe('+OK\r\n')
    expect(await redis.ask('MULTI')).toBe('+OK\r\n')
    expect(await redis.ask('SET', name, 'x')).toBe('+QUEUED\r\n')
    expect(await redis.ask('EXEC')).toBe('*1\r\n+OK\r\n')
  }
})

test('a client that watches a key still sees all nodes', async () => {
  const redis = await fresh()
  await redis.ask('MSET', ...names.flatMap((name) => [name, 'v']))
  redis.send('WATCH', names[0]!)
  redis.send('DBSIZE')
  redis.send('FLUSHALL')
  redis.send('DBSIZE')
  redis.send('MULTI')
  redis.send('SET', names[0]!, 'w')
  redis.send('EXEC')
  const replies: string[] = []
  for (let count = 0; count < 7; count++) replies.push(await redis.next())
  expect(replies).toEqual(['+OK\r\n', ':60\r\n', '+OK\r\n', ':0\r\n', '+OK\r\n', '+QUEUED\r\n', '*-1\r\n'])
})

test('a transaction works within one slot, and says CROSSSLOT over two', async () => {
  const redis = await fresh()
  expect(await redis.ask('MULTI')).toBe('+OK\r\n')
  expect(await redis.ask('SET', '{t}a', '1')).toBe('+QUEUED\r\n')
  expect(await redis.ask('INCR', '{t}a')).toBe('+QUEUED\r\n')
  expect(await redis.ask('EXEC')).toBe('*2\r\n+OK\r\n:2\r\n')
  expect(await redis.ask('MULTI')).toBe('+OK\r\n')
  expect(await redis.ask('EXEC')).toBe('*0\r\n')
  expect(await redis.ask('EXEC')).toBe('-ERR EXEC without MULTI\r\n')
  await redis.ask('MULTI')
  await redis.ask('SET', 'a', '1')
  expect(await redis.ask('SET', 'b', '1')).toMatch(/^(\+QUEUED|-CROSSSLOT)/)
  expect(await redis.ask('SET', 'c', '1')).toMatch(/^(\+QUEUED|-CROSSSLOT)/)
  expect(await redis.ask('EXEC')).toMatch(/^-(EXECABORT|CROSSSLOT)/)
  expect(await redis.ask('WATCH', 'w')).toBe('+OK\r\n')
  expect(await redis.ask('GET', 'another')).toBe('$-1\r\n')
  await redisCli(proxy.port, 'SET', 'w', '1')
  expect(await redis.ask('MULTI')).toBe('+OK\r\n')
  expect(await redis.ask('SET', 'w', '2')).toBe('+QUEUED\r\n')
  expect(await redis.ask('EXEC')).toBe('*-1\r\n')
  // Lua over two slots, in the server's own words.
  expect(await redis.ask('EVAL', 'return 1', '2', 'a', 'b')).toMatch(/^-CROSSSLOT/)
  expect(await redis.ask('MSETNX', 'a', '1', 'b', '2')).toMatch(/^-CROSSSLOT/)
  expect(await redis.ask('EVAL', "return redis.call('GET', KEYS[1])", '1', 'w')).toBe(bulk('1'))
})

test('a cluster client is answered as by a cluster of one', async () => {
  const redis = await fresh()
  expect(await redis.ask('CLUSTER', 'SLOTS')).toContain(`:0\r\n:16383\r\n*4\r\n$9\r\n127.0.0.1\r\n:${proxy.port}\r\n`)
  expect(await redis.ask('CLUSTER', 'SHARDS')).toContain('slots')
  expect(await redis.ask('CLUSTER', 'INFO')).toContain('cluster_state:ok')
  expect(await redis.ask('READONLY')).toBe('+OK\r\n')
})

test('blocking pops, subscriptions and sharded subscriptions reach the right node', async () => {
  const redis = await fresh()
  const other = await RawClient.connect(proxy.port)
  for (const list of ['l1', 'l2', 'l3', 'l4']) {
    redis.send('BLPOP', list, '0')
    const pop = redis.next()
    await waitFor(async () => (await other.ask('LPUSH', list, 'x')) !== '')
    expect(await pop).toContain(list)
    await other.ask('DEL', list)
  }
  if (hasCapability(redisKind(), 'shardedPubSub')) {
    expect(await redis.ask('SSUBSCRIBE', 'shard')).toContain('ssubscribe')
    expect(await other.ask('SPUBLISH', 'shard', 'hi')).toBe(':1\r\n')
    expect(await redis.next()).toContain('smessage')
    expect(await redis.ask('SUNSUBSCRIBE')).toContain('sunsubscribe')
  } else expect(await redis.ask('SSUBSCRIBE', 'shard')).toContain('-ERR unknown command')
  expect(await redis.ask('SUBSCRIBE', 'news')).toContain('subscribe')
  await other.ask('PUBLISH', 'news', 'hi')
  expect(await redis.next()).toContain('message')
  await other.close()
})

test('slots move under load without an error, a lost or a swapped reply', async () => {
  const redis = await fresh()
  const tag = '{moving}'
  const slot = keySlot(tag)
  const ids = await Promise.all(cluster.nodes.map((node) => node.cli('CLUSTER', 'MYID')))
  const ownerOf = async () => {
    const nodes = await cluster.nodes[0]!.cli('CLUSTER', 'NODES')
    const line = nodes.split('\n').find((row) =>
      row
        .split(' ')
        .slice(8)
        .some((range) => {
          const [first, last = first] = range.split('-').map(Number)
          return first! <= slot && slot <= last!
        }),
    )!
    return ids.indexOf(line.split(' ')[0]!)
  }
  const keys = Array.from({ length: 40 }, (_, index) => `${tag}${index}`)
  for (const key of keys) await redis.ask('SET', key, '0')
  let isRunning = true
  let writes = 0
  const wrong: string[] = []
  const load = async (key: string) => {
    const own = await RawClient.connect(proxy.port)
    for (let value = 1; isRunning; value++) {
      own.send('SET', key, `${key}=${value}`)
      own.send('GET', key)
      own.send('STRLEN', key)
      const [set, get, length] = [await own.next(), await own.next(), await own.next()]
      const expected = `${key}=${value}`
      if (set !== '+OK\r\n' || get !== bulk(expected) || length !== `:${expected.length}\r\n`)
        wrong.push(JSON.stringify([key, set, get, length]))
      writes++
    }
    await own.close()
  }
  const loads = keys.slice(0, 8).map(load)
  for (let move = 0; move < scale(3, 12); move++) {
    const from = await ownerOf()
    const masters = (await Promise.all(cluster.nodes.map((node) => node.cli('ROLE')))).map((role) =>
      role.startsWith('master'),
    )
    const to = masters.findIndex((isMaster, index) => isMaster && index !== from)
    const [source, target] = [cluster.nodes[from]!, cluster.nodes[to]!]
    await target.cli('CLUSTER', 'SETSLOT', String(slot), 'IMPORTING', ids[from]!)
    await source.cli('CLUSTER', 'SETSLOT', String(slot), 'MIGRATING', ids[to]!)
    for (;;) {
      const some = await source.cli('CLUSTER', 'GETKEYSINSLOT', String(slot), '5')
      if (some === '') break
      await source.cli('MIGRATE', '127.0.0.1', String(target.port), '', '0', '5000', 'KEYS', ...some.split('\n'))
    }
    for (const node of [target, source, ...cluster.nodes]) {
      if ((await node.cli('ROLE')).startsWith('master'))
        await node.cli('CLUSTER', 'SETSLOT', String(slot), 'NODE', ids[to]!)
    }
  }
  isRunning = false
  await Promise.all(loads)
  expect(wrong).toEqual([])
  expect(writes).toBeGreaterThan(50)
  expect(await redis.ask('MGET', ...keys.slice(8))).toBe(`*32\r\n${bulk('0').repeat(32)}`)
})

test('a killed master: reads go on without an error, a write whose outcome is unknown gets an error that says so', async () => {
  const redis = await fresh()
  // A replica that has not heard of the last move is never elected: wait until all nodes see the same slots.
  await waitFor(async () => {
    const views = await Promise.all(cluster.nodes.map((node) => node.cli('CLUSTER', 'NODES')))
    return new Set(views.map(slotsSeen)).size === 1
  })
  await redis.ask('SET', 'victim', 'here')
  const slot = keySlot('victim')
  const nodes = await cluster.nodes[0]!.cli('CLUSTER', 'SLOTS')
  expect(nodes).not.toBe('')
  const rows = nodes.split('\n')
  let owner = 0
  for (let index = 0; index + 3 < rows.length; index++) {
    const [first, last, host, port] = rows.slice(index, index + 4)
    if (host === '127.0.0.1' && Number(first) <= slot && slot <= Number(last)) owner = Number(port)
  }
  const node = cluster.nodes.find(({ port }) => port === owner)!
  // A node that hangs holds a write of which nobody knows; then it dies.
  node.child.signal('SIGSTOP')
  redis.send('INCR', 'victim-counter{victim}')
  await waitFor(async () => (await redisCli(proxy.port, 'INFO', 'firebreak')).length > 0 || true)
  const reader = await RawClient.connect(proxy.port)
  reader.send('GET', 'victim')
  node.child.signal('SIGKILL')
  node.child.signal('SIGCONT')
  expect(await redis.next()).toMatch(/^-ERR Firebreak: .*unknown/)
  expect(await reader.next()).toBe(bulk('here'))
  expect(await reader.ask('SET', 'victim', 'again')).toBe('+OK\r\n')
  expect(await reader.ask('GET', 'victim')).toBe(bulk('again'))
  await reader.close()
})
