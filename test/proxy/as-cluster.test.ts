import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { keySlot } from '@firebreak/core/commands'
import type { FirebreakProxy } from '@firebreak/proxy'
import { type RedisServer, startClusterOfOne, temporaryFolder } from '@firebreak/testkit'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { ClusterStage } from './cluster-stage.ts'
import { ProxyStage } from './proxy-stage.ts'
import type { RawClient } from './raw-client.ts'

// A proxy that shows itself as a cluster of one, by the side of a real cluster of one.

const execute = promisify(execFile)
let stage: ProxyStage
let real: RedisServer

beforeAll(async () => {
  stage = await ProxyStage.open()
  real = await startClusterOfOne()
})
afterAll(async () => {
  await real.stop()
  await stage.close()
})
afterEach(() => stage.clear())

const keys = ['foo', '{foo}1', '{foo}2', 'bar', '{}x', '']
const commands = `
READONLY|READWRITE|ASKING|READONLY x|CLUSTER KEYSLOT foo|CLUSTER KEYSLOT {a}b|CLUSTER KEYSLOT {}x|CLUSTER KEYSLOT
CLUSTER COUNTKEYSINSLOT 12182|CLUSTER COUNTKEYSINSLOT 1|CLUSTER COUNTKEYSINSLOT x|CLUSTER COUNTKEYSINSLOT 16384|CLUSTER COUNTKEYSINSLOT -1
CLUSTER GETKEYSINSLOT 5061 10|CLUSTER GETKEYSINSLOT 12182 0|CLUSTER GETKEYSINSLOT 12182 -1|CLUSTER GETKEYSINSLOT 99999 1
CLUSTER GETKEYSINSLOT x 1|CLUSTER GETKEYSINSLOT 1 x|CLUSTER GETKEYSINSLOT 1|CLUSTER SLOTS x|CLUSTER REPLICAS|HELLO|HELLO 3|HELLO 2`
  .trim()
  .split(/[|\n]/)

const withoutId = (reply: string) => reply.replace(/(id\r\n):\d+/, '$1:ID')

async function fill(redis: RawClient): Promise<void> {
  await redis.ask('FLUSHALL')
  for (const key of keys) expect(await redis.ask('SET', key, '1')).toBe('+OK\r\n')
}

describe.each(['at rest', 'while it watches', 'after CLIENT ID'])('a client %s', (state) => {
  test('is answered as by a real cluster of one', async () => {
    const proxy = await stage.start({ asCluster: true })
    const [redis, direct] = [await stage.client(proxy), await stage.client(real)]
    for (const client of [redis, direct]) {
      await fill(client)
      if (state === 'while it watches') await client.ask('WATCH', 'w')
      else if (state === 'after CLIENT ID') await client.ask('CLIENT', 'ID')
    }
    for (const line of commands) {
      const [expected, actual] = [await direct.ask(...line.split(' ')), await redis.ask(...line.split(' '))]
      expect([line, withoutId(actual)]).toEqual([line, withoutId(expected)])
    }
    const inSlot = await redis.ask('CLUSTER', 'GETKEYSINSLOT', '12182', '10')
    for (const key of keys.slice(0, 3)) expect(inSlot).toContain(`\r\n${key}\r\n`)
    expect(inSlot).toMatch(/^\*3\r\n/)
    expect(await redis.ask('CLUSTER', 'GETKEYSINSLOT', '12182', '2')).toMatch(/^\*2\r\n/)
  })
})

test.each(['INFO', 'INFO cluster', 'INFO server', 'INFO everything'])('%s says that it is a cluster', async (line) => {
  const redis = await stage.client(await stage.start({ asCluster: true }))
  const plain = await stage.client(await stage.start())
  const modes = (text: string) => text.match(/^(redis_mode|server_mode|cluster_enabled):.*/gm)
  const of = async (client: RawClient) => modes((await client.ask(...line.split(' '))).replaceAll('\r', ''))
  const direct = await stage.client(real)
  const expected = await of(direct)
  expect(await of(redis)).toEqual(expected)
  expect(await of(plain)).toEqual(await of(stage.direct))
  // Also with a connection to Redis for itself, which a transaction's INFO leaves as it was.
  for (const state of [['WATCH', 'w'], ['UNWATCH'], ['CLIENT', 'ID']]) {
    await redis.ask(...state)
    expect(await of(redis)).toEqual(expected)
  }
  expect(await plain.ask('MULTI')).toBe('+OK\r\n')
  expect(await plain.ask(...line.split(' '))).toBe('+QUEUED\r\n')
  expect(await plain.ask('EXEC')).toMatch(/^\*1\r\n/)
  expect(await plain.ask('FIREBREAK', 'INFO')).toContain('firebreak_upstream_owned:0\r\n')
})

test('who may not SCAN learns no keys of a slot', async () => {
  await stage.server.cli('ACL', 'SETUSER', 'few', 'on', '>pass', '~*', '+@all', '-scan')
  const redis = await stage.client(await stage.start({ asCluster: true }))
  await redis.ask('AUTH', 'few', 'pass')
  expect(await redis.ask('CLUSTER', 'GETKEYSINSLOT', '12182', '10')).toMatch(/^-NOPERM/)
})

test('the keys of a slot are found among very many, behind and before other requests', async () => {
  const redis = await stage.client(await stage.start({ asCluster: true }))
  await fill(redis)
  await redis.ask('DEBUG', 'POPULATE', '20000')
  redis.send('SET', '{foo}3', '1')
  redis.send('CLUSTER', 'COUNTKEYSINSLOT', '12182')
  redis.send('PING')
  expect(await redis.next()).toBe('+OK\r\n')
  const [, ...all] = (await stage.direct.ask('KEYS', '*')).split(/\r\n(?:\$\d+\r\n)?/)
  const count = all.filter((key) => keySlot(key) === 12182).length
  expect(count).toBeGreaterThanOrEqual(4)
  expect(await redis.next()).toBe(`:${count}\r\n`)
  expect(await redis.next()).toBe('+PONG\r\n')
})

describe('handshakes, as the libraries send them', () => {
  // Each line is one pipeline; what is behind > must be in its answers.
  const handshakes: Record<string, string> = {
    'go-redis': `
HELLO 3|CLIENT SETINFO LIB-NAME go-redis(,go1.22)|CLIENT SETINFO LIB-VER 9.5.1 > cluster
CLUSTER SLOTS > 16383
COMMAND > get
READONLY > +OK
SET k v > +OK`,
    Lettuce: `
HELLO 3 > cluster
CLIENT SETINFO lib-name Lettuce|CLIENT SETINFO lib-ver 6.3.2
INFO|CLUSTER NODES > myself,master
CLUSTER MYID|READONLY|ASKING > +OK
CLIENT SETNAME lettuce|CLIENT INFO > name=lettuce`,
    phpredis: `
CLUSTER SLOTS > 16383
ASKING > +OK
READONLY|GET k|READWRITE > +OK
CLUSTER KEYSLOT k > :`,
    'redis-py 4': `
INFO > cluster_enabled:1
CLUSTER SLOTS > 16383
COMMAND > get
CLUSTER KEYSLOT k > :7629`,
    'redis-py 6': `
HELLO 3|CLIENT SETINFO LIB-NAME redis-py|CLIENT SETINFO LIB-VER 6.4.0 > cluster
CLUSTER SLOTS > 16383
COMMAND > get
READONLY|GET k|CLUSTER SHARDS > slots`,
    'Jedis 5': `
HELLO 3|CLIENT SETNAME shop|CLIENT SETINFO LIB-NAME jedis|CLIENT SETINFO LIB-VER 5.2.0 > cluster
CLUSTER SLOTS > 16383
PING|SET k v|ASKING|GET k > v
CLIENT GETNAME > shop`,
    'StackExchange.Redis': `
HELLO 3|CLIENT SETNAME shop|CLIENT SETINFO lib-name SE.Redis|CLIENT ID > cluster
CONFIG GET slave-read-only|CONFIG GET databases|INFO replication|INFO server > _mode:cluster
CLUSTER NODES > myself,master
GET __Booksleeve_TieBreak|ECHO end > end
SUBSCRIBE __Booksleeve_MasterChanged > __Booksleeve_MasterChanged`,
    'redis-py 2, with redis-py-cluster': `
INFO cluster > cluster_enabled:1
CLUSTER SLOTS > 16383
CONFIG GET cluster-require-full-coverage > *
CLUSTER NODES > myself,master`,
  }
  const proxies: [string, () => Promise<Pick<FirebreakProxy, 'port'>>][] = [
    ['one Redis', () => stage.start({ asCluster: true })],
    ['a cluster', async () => cluster.proxy],
  ]
  let cluster: ClusterStage
  beforeAll(async () => {
    cluster = await ClusterStage.open([])
  })
  afterAll(() => cluster.close())

  describe.each(proxies)('before %s', (_, start) => {
    test.each(Object.entries(handshakes))('%s', async (_name, lines) => {
      const redis = await stage.client(await start())
      for (const line of lines.trim().split('\n')) {
        const [requests, wanted = ''] = line.split(' > ')
        const words = requests!.split('|').map((request) => request.split(' '))
        for (const request of words) redis.send(...request)
        let answers = ''
        for (const request of words) {
          const answer = await redis.next()
          // Redis 7.0 has no CLIENT SETINFO: libraries go on without it.
          if (request[1] !== 'SETINFO') expect([request.join(' '), answer[0]]).not.toContain('-')
          answers += answer
        }
        expect(answers).toContain(wanted)
      }
    })

    test('redis-py, the real one, as a client of a cluster', async () => {
      const { port } = await start()
      const file = join(temporaryFolder('as-cluster'), 'client.py')
      writeFileSync(
        file,
        `import sys
from redis.cluster import RedisCluster
r = RedisCluster(host='127.0.0.1', port=int(sys.argv[1]), decode_responses=True, read_from_replicas=True)
r.flushall()
r.set('k', 'v')
print(r.get('k'), len(r.get_nodes()), r.keyslot('k'), r.cluster_keyslot('k'), r.cluster_countkeysinslot(r.keyslot('k')))
print(*r.cluster_get_keys_in_slot(r.keyslot('k'), 10))
p = r.pipeline(); p.set('a', 1); p.incr('a'); p.get('b'); print(*p.execute())
`,
      )
      const { stdout } = await execute('/usr/bin/python3', [file, String(port)])
      expect(stdout).toBe('v 1 7629 7629 1\nk\nTrue 2 None\n')
    })

    test('phpredis, the real one, as a client of a cluster', async () => {
      const { port } = await start()
      const file = join(temporaryFolder('as-cluster'), 'client.php')
      writeFileSync(
        file,
        `<?php
$r = new RedisCluster(null, ["127.0.0.1:$argv[1]"]);
$r->flushall($r->_masters()[0]);
$r->setOption(RedisCluster::OPT_SLAVE_FAILOVER, RedisCluster::FAILOVER_DISTRIBUTE);
$r->set('k', 'v');
echo $r->get('k'), ' ', count($r->_masters()), ' ', $r->cluster('k', 'KEYSLOT', 'k'), "\\n";
$done = $r->multi()->set('t', 10)->incr('t')->exec();
echo $done[1], ' ', implode(' ', $r->mget(['k', 't'])), "\\n";
`,
      )
      const { stdout } = await execute('php', [file, String(port)])
      expect(stdout).toBe('v 1 7629\n11 v 11\n')
    })
  })
})
