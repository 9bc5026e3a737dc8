import { execFile } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { parseRedisUrl } from '@firebreak/core/resp'
import { advise, type Finding, findBigByScan } from '@firebreak/find'
import { startHub } from '@firebreak/hub'
import { type RedisServer, startRedis, temporaryFolder } from '@firebreak/testkit'
import { afterAll, beforeAll, expect, test } from 'vitest'

const run = promisify(execFile)
const folder = temporaryFolder('advise')
const ends: (() => unknown)[] = []
let redis: RedisServer
let hubUrl: string

/** Programs by the names that the advice uses, for our servers. */
function shim(name: string, line: string): void {
  writeFileSync(join(folder, name), `#!/bin/sh\nexec ${line} "$@"\n`, { mode: 0o755 })
}

beforeAll(async () => {
  redis = await startRedis()
  ends.push(() => redis.stop())
  const hub = await startHub({ logLevel: 'silent' })
  ends.push(() => hub.close())
  hubUrl = hub.url
  const { stdout } = await run('which', ['redis-cli'])
  shim('redis-cli', `${stdout.trim()} -p ${redis.port}`)
  const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))
  const flags = '--conditions=firebreak-source --disable-warning=ExperimentalWarning'
  shim('firebreak', `${process.execPath} ${flags} ${main}`)
  const fill = `for n = 1, 6000 do
    redis.call('SET', 'user:' .. n .. ':name', 'x')
    redis.call('SET', 'user:' .. n .. ':age', '1')
    redis.call('SET', 'seen:' .. n, '1')
    redis.call('SET', 'seen:' .. n + 6000, '1')
    redis.call('HSET', 'hash', n, 'v', n + 6000, 'v')
    redis.call('ZADD', 'zset', n, n, n, n + 6000)
  end
  redis.call('SET', 'text', string.rep('x', 2000000))
  redis.call('EXPIRE', 'seen:1', 5000)`
  await redis.cli('EVAL', fill, '0')
})
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

/** Pastes a command: into a shell if it names a program, otherwise into redis-cli. */
async function paste(command: string): Promise<string> {
  const env = { ...process.env, PATH: `${folder}:${process.env['PATH']}`, FIREBREAK_HUB: hubUrl }
  const isShell = /^(firebreak|redis-cli|echo) /.test(command)
  const script = isShell ? command : `redis-cli <<'END'\n${command}\nEND`
  const { stdout, stderr } = await run('bash', ['-c', script], { env, maxBuffer: 1 << 26 })
  return stdout + stderr
}

test('every command that is advised exists, and works when it is pasted', async () => {
  const found = await findBigByScan({ target: parseRedisUrl(redis.url), looksUpTtl: true, countsElements: true })
  const key = { key: "pro'duct 1", accesses: 1000, writes: 0, share: 0.5, commands: { HGETALL: 9 } }
  const hot: Finding = { ...found, kind: 'hot', keys: [key, { ...key, key: 'stock', writes: 900 }] }
  delete (hot as { prefixes?: unknown }).prefixes
  const advice = advise([found, hot])
  expect(new Set(advice.map(({ action }) => action))).toEqual(
    new Set([
      'split',
      'unlink',
      'trim',
      'shrink',
      'fields-as-hash',
      'hash-instead-of-keys',
      'add-ttl',
      'cache-or-copy',
      'read-less',
      'spread-writes',
      'lazyfree',
    ]),
  )
  // The split needs the server's address, and deletes what is unlinked: it has tests of its own.
  const commands = advice
    .filter(({ action, subject }) => !['split', 'unlink'].includes(action) && !subject.includes("'"))
    .flatMap((one) => one.commands)
    .concat(advice.find(({ action }) => action === 'cache-or-copy')!.commands)
  const before = await redis.cli('TTL', 'seen:1')
  for (const command of commands)
    expect(await paste(command), command).not.toMatch(/\b(ERR|WRONGTYPE|error|not found)\b/i)
  expect(Number(await redis.cli('TTL', 'seen:7'))).toBeGreaterThan(86_000)
  expect(Number(await redis.cli('TTL', 'seen:1'))).toBeLessThanOrEqual(Number(before))
  expect(await redis.cli('GET', 'user:1:name')).toBe('x')
  const { rules } = (await (await fetch(`${hubUrl}/v1/rules`)).json()) as { rules: { pattern: unknown }[] }
  expect(rules.map(({ pattern }) => pattern)).toContainEqual({ kind: 'exact', keys: [key.key] })
}, 120_000)
