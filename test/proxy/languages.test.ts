import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { type FirebreakProxy, startProxy } from '@firebreak/proxy'
import { type RedisServer, startRedis, TestHub, temporaryFolder, waitFor } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

// Clients of other languages as their users have them: each connects, pipelines, runs a transaction, pops from a list
// that is filled later, gets a message, and reads a hot key. Each prints one line per step.

const execute = promisify(execFile)
const folder = temporaryFolder('languages')
let server: RedisServer
let hub: TestHub
let proxy: FirebreakProxy

beforeAll(async () => {
  server = await startRedis()
  hub = await TestHub.start()
  const shield = { hubs: [hub.url], redisClusterId: 'main', serviceId: 'test', tableFile: false } as const
  proxy = await startProxy({ upstream: server.url, port: 0, shield })
  await waitFor(() => hub.hellos.length > 0)
  await server.cli('SET', 'hot', 'burning')
  hub.heat('main', ['hot'])
})

afterAll(async () => {
  await proxy?.close()
  await hub?.kill()
  await server?.stop()
})

const steps = [
  'connect PONG',
  'pipeline 1 2 3',
  'transaction 10 11',
  'pop queue x',
  'message news hello',
  'hot burning',
]

async function localHits(): Promise<number> {
  const { stdout } = await execute('redis-cli', ['-p', String(proxy.port), 'FIREBREAK', 'INFO'])
  return Number(/firebreak_local_hits:(\d+)/.exec(stdout)![1])
}

/** What others do meanwhile: fill the list that is waited for, publish once somebody listens. */
async function help(name: string): Promise<void> {
  await waitFor(async () => (await server.cli('INFO', 'clients')).includes('blocked_clients:1'), { timeoutMs: 30_000 })
  await server.cli('RPUSH', `queue-${name}`, 'x')
  await waitFor(async () => (await server.cli('PUBLISH', `news-${name}`, 'hello')) !== '0', { timeoutMs: 30_000 })
}

async function runs(name: string, program: string, args: readonly string[]): Promise<void> {
  const before = await localHits()
  const [{ stdout }] = await Promise.all([
    execute(program, [...args, String(proxy.port)], { timeout: 50_000 }),
    help(name),
  ])
  const lines = stdout.trim().split('\n')
  expect(lines).toEqual(steps.map((step) => step.replace('queue', `queue-${name}`).replace('news', `news-${name}`)))
  // The first of its fifty reads may have been the load.
  expect(await localHits()).toBeGreaterThanOrEqual(before + 40)
}

test('Python', async () => {
  const file = join(folder, 'client.py')
  writeFileSync(
    file,
    `import sys, redis
r = redis.Redis(port=int(sys.argv[1]), decode_responses=True)
print('connect', 'PONG' if r.ping() else '')
p = r.pipeline(transaction=False)
for i in range(3): p.incr('n-python')
print('pipeline', *p.execute())
def change(t):
    t.multi(); t.set('t-python', 10); t.incr('t-python')
done = r.transaction(change, 'w-python')
print('transaction', 10 if done[0] else '', done[1])
print('pop', *r.blpop('queue-python', 30))
s = r.pubsub(); s.subscribe('news-python')
for m in s.listen():
    if m['type'] == 'message':
        print('message', m['channel'], m['data']); break
for i in range(50): v = r.get('hot')
print('hot', v)
`,
  )
  await runs('python', '/usr/bin/python3', [file])
})

test('PHP', async () => {
  const file = join(folder, 'client.php')
  writeFileSync(
    file,
    `<?php
$r = new Redis(); $r->connect('127.0.0.1', (int)$argv[1]);
echo 'connect ', $r->ping('PONG'), "\\n";
$p = $r->pipeline(); for ($i = 0; $i < 3; $i++) $p->incr('n-php');
echo 'pipeline ', implode(' ', $p->exec()), "\\n";
$r->watch('w-php');
$done = $r->multi()->set('t-php', 10)->incr('t-php')->exec();
echo 'transaction ', $done[0] ? 10 : '', ' ', $done[1], "\\n";
echo 'pop ', implode(' ', $r->blPop(['queue-php'], 30)), "\\n";
$s = new Redis(); $s->connect('127.0.0.1', (int)$argv[1]); $s->setOption(Redis::OPT_READ_TIMEOUT, 30);
try { $s->subscribe(['news-php'], function ($c, $channel, $m) { echo "message $channel $m\\n"; $c->close(); }); } catch (Exception $e) {}
for ($i = 0; $i < 50; $i++) $v = $r->get('hot');
echo "hot $v\\n";
`,
  )
  await runs('php', 'php', [file])
})

test('C, with hiredis', async () => {
  const [source, program] = [join(folder, 'client.c'), join(folder, 'client')]
  writeFileSync(
    source,
    `#include <stdio.h>
#include <stdlib.h>
#include <hiredis/hiredis.h>
int main(int argc, char **argv) {
  redisContext *c = redisConnect("127.0.0.1", atoi(argv[1]));
  redisReply *r = redisCommand(c, "PING");
  printf("connect %s\\n", r->str);
  for (int i = 0; i < 3; i++) redisAppendCommand(c, "INCR n-c");
  printf("pipeline");
  for (int i = 0; i < 3; i++) { redisGetReply(c, (void **)&r); printf(" %lld", r->integer); }
  printf("\\n");
  redisCommand(c, "WATCH w-c"); redisCommand(c, "MULTI");
  redisCommand(c, "SET t-c 10"); redisCommand(c, "INCR t-c");
  r = redisCommand(c, "EXEC");
  printf("transaction %s %lld\\n", r->element[0]->type == REDIS_REPLY_STATUS ? "10" : "", r->element[1]->integer);
  r = redisCommand(c, "BLPOP queue-c 30");
  printf("pop %s %s\\n", r->element[0]->str, r->element[1]->str);
  redisContext *s = redisConnect("127.0.0.1", atoi(argv[1]));
  redisCommand(s, "SUBSCRIBE news-c");
  redisGetReply(s, (void **)&r);
  printf("message %s %s\\n", r->element[1]->str, r->element[2]->str);
  for (int i = 0; i < 50; i++) r = redisCommand(c, "GET hot");
  printf("hot %s\\n", r->str);
  return 0;
}
`,
  )
  await execute('cc', ['-o', program, source, '-lhiredis'])
  await runs('c', program, [])
})

test('redis-cli', async () => {
  const file = join(folder, 'client.sh')
  writeFileSync(
    file,
    `cli() { redis-cli -p "$port" --no-auth-warning "$@"; }
port=$1
echo "connect $(cli PING)"
echo "pipeline $(printf 'INCR n-cli\\nINCR n-cli\\nINCR n-cli\\n' | cli | xargs)"
echo "transaction $(printf 'WATCH w-cli\\nMULTI\\nSET t-cli 10\\nINCR t-cli\\nEXEC\\nGET t-cli\\n' | cli | tail -n 3 | xargs | sed 's/^OK 11 11$/10 11/')"
echo "pop $(cli BLPOP queue-cli 30 | xargs)"
mkfifo "$0.news"
redis-cli -p "$port" SUBSCRIBE news-cli > "$0.news" & listener=$!
while read -r line; do
  case "$line" in
    message) read -r channel; read -r text; echo "message $channel $text"; break;;
  esac
done < "$0.news"
kill $listener
echo "hot $(cli -r 50 GET hot | tail -n 1)"
`,
  )
  await runs('cli', 'sh', [file])
})

test('redis-cli and redis-benchmark in their other modes', async () => {
  const cli = async (...args: string[]) =>
    (await execute('redis-cli', ['-p', String(proxy.port), ...args])).stdout.trim()
  expect(await cli('PING')).toBe('PONG')
  expect(await cli('-3', 'HGETALL', 'none')).toBe('')
  expect(await cli('-r', '3', 'INCR', 'n-plain')).toBe('1\n2\n3')
  expect(await cli('EVAL', 'return {KEYS[1],ARGV[1]}', '1', 'k', 'a')).toBe('k\na')
  expect(await cli('--scan', '--pattern', 'n-plain')).toBe('n-plain')
  expect(await cli('-c', 'GET', 'hot')).toBe('burning')
  expect(await cli('--bigkeys')).toContain('Biggest string found')
  const args = [
    '-p',
    String(proxy.port),
    '-n',
    '2000',
    '-P',
    '8',
    '-q',
    '-t',
    'ping,set,get,incr,lpush,lpop,sadd,hset,zadd,mset',
  ]
  const { stdout } = await execute('redis-benchmark', args)
  expect(stdout.match(/requests per second/g)!.length).toBeGreaterThanOrEqual(10)
  expect(stdout).not.toContain('Error')
})
