import { createServer } from 'node:net'
import {
  type GuardedChild,
  type RedisServer,
  startRedis,
  startSource,
  temporaryFolder,
  waitFor,
} from '@firebreak/testkit'
import { type CommandIo, commands, runCommand } from 'firebreak/cli'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { RawClient } from '../proxy/raw-client.ts'

const main = new URL('../../packages/cli/src/main.ts', import.meta.url)
let server: RedisServer
const children: GuardedChild[] = []
beforeAll(async () => {
  server = await startRedis()
})
afterEach(() => Promise.all(children.splice(0).map((child) => child.stop())))
afterAll(() => server.stop())

function run(args: readonly string[]): GuardedChild {
  const child = startSource(main, args, { cwd: temporaryFolder('cli') })
  children.push(child)
  return child
}

/** The exit code and what was said of a command that ends by itself. */
async function tried(args: readonly string[], env: Record<string, string> = {}): Promise<[code: number, said: string]> {
  let said = ''
  const out = { write: (text: string) => (said += text) }
  const io = { env, stdout: out, stderr: out, signal: AbortSignal.abort() } as unknown as CommandIo
  return [await runCommand(commands, ['proxy', ...args], io), said]
}

describe('what cannot be is refused as wrong usage, under the name that was used', () => {
  test.each([
    [['--upstream', ''], {}, '--upstream is empty'],
    [[], { FIREBREAK_PROXY_UPSTREAM: '' }, 'FIREBREAK_PROXY_UPSTREAM is empty'],
    [['--upstream', 'redis://'], {}, 'upstream is "redis://"'],
    [['--upstream', '10.0.0.1:7000,'], {}, 'upstream is "10.0.0.1:7000,"'],
    [[], { REDIS_URL: '' }, 'REDIS_URL is empty'],
    [['--port', '70000'], {}, '--port is "70000"; it must be a whole number from 0 to 65535'],
    [['--port', 'abc'], {}, '--port is "abc"'],
    [[], { FIREBREAK_PROXY_PORT: '70000' }, 'FIREBREAK_PROXY_PORT is "70000"'],
    [['--workers', '0'], {}, '--workers is "0"; it must be a whole number from 1 on'],
    [[], { FIREBREAK_PROXY_MODE: 'many' }, 'FIREBREAK_PROXY_MODE is "many"'],
    [['--tls-cert', '/nope', '--tls-key', '/nope'], {}, '--tls-cert names a file that cannot be read: ENOENT'],
    [[], { FIREBREAK_PROXY_UPSTREAM_CA: '/nope' }, 'FIREBREAK_PROXY_UPSTREAM_CA names a file that cannot be read'],
    [['--announce', 'here'], {}, '--announce is "here"; it must be HOST:PORT'],
    [[], { FIREBREAK_PROXY_USER: 'secret' }, 'FIREBREAK_PROXY_USER must be NAME:PASSWORD'],
  ])('%j %j', async (args, env, words) => {
    const [code, said] = await tried(args, env as Record<string, string>)
    expect(said).toContain(words)
    expect(said).not.toContain('secret')
    expect(code).toBe(2)
  })
})

test('a port that is taken is a failure, not wrong usage', async () => {
  const [code, said] = await tried(['--upstream', server.url, '--port', String(server.port)])
  expect(said).toContain(`Port ${server.port} is in use. Choose another with --port.`)
  expect(code).toBe(1)
})

test('warns on stderr when Redis is unreachable, and again when it recovers', async () => {
  const own = await startRedis()
  const child = run(['proxy', '--upstream', own.url, '--port', '0', '--connect-wait-ms', '100'])
  await child.printed(/listens on/)
  await own.stop()
  // The reason depends on the moment: refused, or ended in the middle of a question.
  await child.printed(
    new RegExp(`Redis at 127\\.0\\.0\\.1:${own.port} is unreachable \\(.+\\): all requests that need it fail`),
  )
  const again = await own.restart()
  await child.printed(/recovered after/)
  await again.stop()
})

test.each(['SIGINT', 'SIGTERM'] as const)('a second %s ends it now, with the code of that signal', async (signal) => {
  const child = run(['proxy', '--upstream', server.url, '--port', '0', '--drain-ms', '600000'])
  const [, port] = await child.printed(/listens on \S+:(\d+)/)
  const client = await RawClient.connect(Number(port))
  client.send('BLPOP', `never-${port}`, '0')
  await waitFor(async () => (await server.cli('INFO', 'clients')).includes('blocked_clients:1'))
  child.signal(signal)
  // It takes no more clients, and waits for the one that it has.
  await waitFor(() =>
    RawClient.connect(Number(port)).then(
      async (other) => void (await other.close()),
      () => true,
    ),
  )
  child.signal(signal)
  expect(await child.exited).toBe(signal === 'SIGINT' ? 130 : 143)
  await client.closed
})

test('up takes a free port for the proxy where the usual one is taken', async () => {
  const usual = createServer()
  // Where somebody else has it, it is taken all the same.
  await new Promise((resolve) => usual.once('error', resolve).listen(6380, '127.0.0.1', () => resolve(undefined)))
  const child = run(['up', '--redis', server.url, '--port', '0', '--data', 'data'])
  const [, port] = await child.printed(/Proxy {4}redis:\/\/127\.0\.0\.1:(\d+)/, 60_000)
  expect(Number(port)).not.toBe(6380)
  usual.close()
})
