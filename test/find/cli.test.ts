import { execFileSync, spawn } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { findingRoutes } from '@firebreak/hub'
import { type RedisServer, scale, sourceArgs, startRedis, temporaryFolder, waitFor } from '@firebreak/testkit'
import fastify from 'fastify'
import { commands, runCommand } from 'firebreak/cli'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'

const main = fileURLToPath(new URL('../../packages/cli/src/main.ts', import.meta.url))

interface Ended {
  readonly code: number | null
  readonly stdout: string
  readonly stderr: string
}

/** Runs the command in this process, with streams of its own. */
async function firebreak(
  args: readonly string[],
  options: { env?: Record<string, string>; input?: string; signal?: AbortSignal } = {},
): Promise<Ended> {
  let [stdout, stderr] = ['', '']
  const collect = (take: (text: string) => void) =>
    ({
      write(text: string) {
        take(text)
        return true
      },
    }) as never
  const stdin = new PassThrough()
  stdin.end(options.input ?? '')
  const code = await runCommand(commands, args, {
    env: options.env ?? {},
    stdin: stdin as never,
    stdout: collect((text) => {
      stdout += text
    }),
    stderr: collect((text) => {
      stderr += text
    }),
    signal: options.signal ?? new AbortController().signal,
  })
  return { code, stdout, stderr }
}

/** Runs the real command in a process of its own. */
function firebreakProcess(
  args: readonly string[],
  env: Record<string, string>,
  onStart: (pid: number) => void,
): Promise<Ended> {
  return new Promise((resolve) => {
    const child = spawn(process.execPath, [...sourceArgs, main, ...args], { env: { ...process.env, ...env } })
    let [stdout, stderr] = ['', '']
    child.stdout.on('data', (chunk) => (stdout += String(chunk)))
    child.stderr.on('data', (chunk) => (stderr += String(chunk)))
    child.on('close', (code) => resolve({ code, stdout, stderr }))
    onStart(child.pid!)
  })
}

let server: RedisServer
let port: string
beforeAll(async () => {
  server = await startRedis({ args: ['--requirepass', 'geheim', '--maxmemory-policy', 'allkeys-lfu'] })
  port = String(server.port)
  const run = (...args: string[]) => server.cli('-a', 'geheim', '--no-auth-warning', ...args)
  await run('EVAL', "for i=1,20000 do redis.call('HSET', KEYS[1], 'f' .. i, string.rep('v', 20)) end", '1', 'users')
  await run('EVAL', "for i=1,ARGV[1] do redis.call('SET', 'small:' .. i, i) end", '0', String(scale(3000, 100_000)))
  await run('EVAL', "redis.call('SET', '\\0\\255\\27[31m', string.rep('b', 5000))", '0')
})
afterAll(() => server.stop())

const auth = { env: { REDISCLI_AUTH: 'geheim' } }

describe('output', () => {
  test('a table for people: data on stdout, notes on stderr, binary keys escaped', async () => {
    const { code, stdout, stderr } = await firebreak(['find', 'big', '--port', port, '--top', '3'], auth)
    expect(code).toBe(0)
    expect(stdout).toMatch(/^Biggest keys\n# +key +type +memory/)
    expect(stdout).toMatch(/1 {2}users +hash +\d/)
    expect(stdout).toContain('\\x00\\xff\\x1b[31m')
    expect(stdout).not.toMatch(/\u001b/)
    expect(stdout).toMatch(/Prefixes\nprefix/)
    expect(stderr).toMatch(/note: elements were not counted/)
    expect(stdout).not.toMatch(/note:/)
  })

  test('JSON, NDJSON and CSV carry the same keys', async () => {
    const of = async (format: string) =>
      (await firebreak(['find', 'big', '--port', port, format, '--top', '2', '--elements'], auth)).stdout
    const finding = JSON.parse(await of('--json'))
    expect(finding).toMatchObject({ version: 1, kind: 'big', method: 'scan', isComplete: true })
    expect(finding.keys[0]).toMatchObject({ key: 'users', type: 'hash', elements: 20_000 })
    const lines = (await of('--ndjson'))
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line))
    expect(lines[0]).toMatchObject({ kind: 'big', list: 'all', rank: 1, key: 'users' })
    expect(lines.some(({ list }) => list === 'hash/elements')).toBe(true)
    const csv = (await of('--csv')).split('\r\n')
    expect(csv[0]).toMatch(/^kind,method,list,rank,key,type,bytes,elements/)
    expect(csv[1]).toMatch(/^big,scan,all,1,users,hash,\d+,20000/)
  })

  test('--fail-on exits with 3 on a match and 0 otherwise', async () => {
    const met = await firebreak(['find', 'big', '-p', port, '--fail-on', 'bytes>100kb', '-q'], auth)
    expect(met.code).toBe(3)
    expect(met.stderr).toMatch(/bytes>100kb is met by users/)
    expect((await firebreak(['find', 'big', '-p', port, '--fail-on', 'bytes>1gb', '-q'], auth)).code).toBe(0)
  })
})

describe('wrong usage exits with 2 and says what is right', () => {
  test.each([
    [['find'], /say what to find: hot, big, slots or advise/],
    [['find', 'bug'], /did you mean "find big"/],
    [['find', 'big', '--tpo', '3'], /--tpo/],
    [['find', 'big', '--type', 'table'], /--type is "table"; it must be one of string/],
    [['find', 'big', '--top', '0'], /--top is "0"/],
    [['find', 'big', '--fail-on', 'size>3'], /--fail-on is "size>3"/],
    [['find', 'hot', '--scan', '--monitor'], /cannot be combined/],
    [['find', 'big', '--json', '--csv'], /cannot be combined/],
    [['find', 'hot', '--monitor', '--duration', 'long'], /write a duration such as 500ms/],
    [['find', 'advise', '--apply', 'delete', '--key', 'k'], /must be split or cut-over/],
    [['find', 'advise', '--apply', 'split'], /needs --key/],
    [['completion', 'tcsh'], /use bash, zsh or fish/],
  ])('%j', async (args, message) => {
    const { code, stderr, stdout } = await firebreak(args)
    expect(code).toBe(2)
    expect(stderr).toMatch(message)
    expect(stderr).toMatch(/See: firebreak help/)
    expect(stdout).toBe('')
  })
})

describe('passwords', () => {
  test('come from the environment, a URL or a prompt, and are never shown', async () => {
    const url = `redis://:geheim@127.0.0.1:${port}`
    const runs = [
      await firebreak(['find', 'big', '-p', port, '--json'], auth),
      await firebreak(['find', 'big', '--json', '--url', url]),
      await firebreak(['find', 'big', '--json'], { env: { REDIS_URL: url } }),
      await firebreak(['find', 'big', '-p', port, '--json', '--ask-password'], { input: 'geheim\n' }),
    ]
    for (const { code, stdout, stderr } of runs) {
      expect(code, stderr).toBe(0)
      expect(stdout + stderr).not.toMatch(/geheim/)
    }
    const wrong = await firebreak(['find', 'big', '-p', port], { env: { REDISCLI_AUTH: 'falsch' } })
    expect(wrong.code).toBe(1)
    expect(wrong.stderr).toMatch(/WRONGPASS/)
    expect(wrong.stderr).not.toMatch(/falsch/)
    const none = await firebreak(['find', 'big', '-p', port], { env: { REDISCLI_AUTH: '' } })
    expect(none.code).toBe(1)
  })
})

test('Ctrl-C and --max-time print what was found', async () => {
  const isScanning = async () =>
    /cmd=(memory|type|scan)/.test(await server.cli('-a', 'geheim', '--no-auth-warning', 'CLIENT', 'LIST'))
  const flags = ['find', 'big', '-p', port, '--throttle', '1000', '--count', '100', '--json']
  const interrupted = await firebreakProcess(flags, auth.env, (pid) => {
    void waitFor(isScanning, { timeoutMs: 60_000 }).then(() => process.kill(pid, 'SIGINT'))
  })
  expect(interrupted.code).toBe(0)
  const finding = JSON.parse(interrupted.stdout)
  expect(finding.isComplete).toBe(false)
  expect(finding.scanned).toBeGreaterThan(0)
  expect(interrupted.stderr).toMatch(/stopped early/)
  const timed = await firebreak(
    ['find', 'big', '-p', port, '--throttle', '500', '--count', '100', '--max-time', '300ms', '--json'],
    auth,
  )
  expect(JSON.parse(timed.stdout).isComplete).toBe(false)
})

test('a damaged dump prints what was read, and exits with 1 and the offset', async () => {
  const file = join(temporaryFolder('dump'), 'cut.rdb')
  writeFileSync(file, Buffer.concat([Buffer.from('REDIS0011'), Buffer.from([0, 1, 0x6b, 1, 0x76, 0, 5, 0x6b])]))
  const { code, stdout, stderr } = await firebreak(['find', 'big', '--rdb', file, '--json'])
  expect(code).toBe(1)
  expect(JSON.parse(stdout).keys).toMatchObject([{ key: 'k' }])
  expect(stderr).toMatch(/RDB at byte \d+: .*truncated/)
})

test('findings can be sent to a hub, and read again by advise', async () => {
  const app = fastify()
  await app.register(findingRoutes)
  await app.listen({ port: 0, host: '127.0.0.1' })
  const { port: hubPort } = app.server.address() as { port: number }
  const sent = await firebreak(
    ['find', 'big', '-p', port, '--json', '--elements', '--hub', `http://127.0.0.1:${hubPort}`],
    auth,
  )
  expect(sent.code, sent.stderr).toBe(0)
  const { findings } = (await app.inject('/v1/findings')).json()
  expect(findings).toEqual([JSON.parse(sent.stdout)])
  await app.close()
  const advice = await firebreak(['find', 'advise', '--from', '-'], { input: sent.stdout })
  expect(advice.code).toBe(0)
  expect(advice.stdout).toMatch(/users\n.*a hash of 20,000 elements/)
  expect(advice.stdout).toMatch(/firebreak find advise --apply split --key users --segments 4/)
  const gone = await firebreak(['find', 'big', '-p', port, '-q', '--hub', 'http://127.0.0.1:1'], auth)
  expect(gone.code).toBe(1)
  expect(gone.stdout).toMatch(/users/)
})

test('advise changes nothing without --apply; with it a key is split, and cut over', async () => {
  const run = (...args: string[]) => server.cli('-a', 'geheim', '--no-auth-warning', ...args)
  const keysBefore = await run('DBSIZE')
  const plan = await firebreak(['find', 'advise', '-p', port], auth)
  expect(plan.stdout).toMatch(/MEDIUM|HIGH|LOW|Nothing to do/)
  expect(await run('DBSIZE')).toBe(keysBefore)
  const split = await firebreak(
    ['find', 'advise', '-p', port, '--apply', 'split', '--key', 'users', '--segments', '8'],
    auth,
  )
  expect(split.code, split.stderr).toBe(0)
  expect(split.stdout).toMatch(/"users:0" to "users:7", and compared/)
  expect(await run('HLEN', 'users')).toBe('20000')
  const over = await firebreak(['find', 'advise', '-p', port, '--apply', 'cut-over', '--key', 'users', '--json'], auth)
  expect(JSON.parse(over.stdout)).toMatchObject({ key: 'users', state: 'cut-over', segments: 8 })
  expect(await run('EXISTS', 'users')).toBe('0')
})

describe('help, completion and manual come from the registry', () => {
  test('help begins with examples, and names every flag', async () => {
    const { stdout, code } = await firebreak(['help', 'find'])
    expect(code).toBe(0)
    expect(stdout.indexOf('Examples:')).toBeLessThan(stdout.indexOf('Usage:'))
    for (const flag of [
      '--scan',
      '--monitor',
      '--capture',
      '--server',
      '--rdb',
      '--live',
      '--throttle',
      '--max-time',
      '--match',
      '--type',
      '--top',
      '--fail-on',
      '--hub',
      '--apply',
    ]) {
      expect(stdout).toContain(flag)
    }
    expect(stdout).toMatch(/env REDISCLI_AUTH/)
  })

  test('bash completes commands, subcommands and flags', async () => {
    const { stdout } = await firebreak(['completion', 'bash'])
    const complete = (...words: string[]) =>
      execFileSync('bash', [
        '-c',
        `${stdout}\nCOMP_WORDS=(${words.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=$((\${#COMP_WORDS[@]}-1)); _firebreak; echo "\${COMPREPLY[@]}"`,
      ])
        .toString()
        .trim()
        .split(' ')
    expect(complete('firebreak', 'fi')).toEqual(['find'])
    expect(complete('firebreak', 'find', 'b')).toEqual(['big'])
    expect(complete('firebreak', 'find', 'hot', '--mon')).toEqual(['--monitor'])
    for (const shell of ['zsh', 'fish']) {
      const script = (await firebreak(['completion', shell])).stdout
      expect(script).toMatch(/find/)
      expect(script).toMatch(/monitor/)
    }
  })

  test('the manual page is troff and contains every command', async () => {
    const { stdout } = await firebreak(['man'])
    expect(stdout).toMatch(/^\.TH FIREBREAK 1/)
    expect(stdout).toMatch(/\.SH "FIREBREAK FIND"/)
    expect(stdout).toMatch(/firebreak find hot \\-\\-monitor/)
    // No line of the text may be parsed as a request.
    for (const line of stdout.split('\n')) if (line.startsWith('.')) expect(line).toMatch(/^\.(TH|SH|TP|B|I|nf|fi)\b/)
  })
})
