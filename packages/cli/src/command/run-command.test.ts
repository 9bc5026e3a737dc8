import { createServer as createHttpServer } from 'node:http'
import { createServer } from 'node:net'
import { version } from '@firebreak/core'
import { expect, test } from 'vitest'
import { commands } from '../commands/index.ts'
import type { Command, CommandIo } from './command.ts'
import { runCommand } from './run-command.ts'

async function firebreak(words: readonly string[], env: Record<string, string> = {}) {
  let [out, said] = ['', '']
  const io = {
    env,
    stdout: { write: (text: string) => (out += text) },
    stderr: { write: (text: string) => (said += text) },
    signal: new AbortController().signal,
  } as unknown as CommandIo
  const code = await runCommand(commands, words, io)
  return { code, out, said }
}

test.each([['--version'], ['-v'], ['version']])('%s prints the version alone', async (word) => {
  expect(await firebreak([word])).toEqual({ code: 0, out: `${version}\n`, said: '' })
})

test('help of a command that does not exist fails, with the closest one', async () => {
  const { code, out, said } = await firebreak(['help', 'prxy'])
  expect([code, out]).toEqual([2, ''])
  expect(said).toContain('unknown command "prxy"; did you mean "proxy"?')
  expect((await firebreak(['help', 'proxy'])).out).toContain('--upstream')
})

test('a flag that does not exist is told with the closest one that does', async () => {
  expect((await firebreak(['up', '--prot', '1'])).said).toContain("Unknown option '--prot'; did you mean '--port'?\n")
  expect((await firebreak(['rules', '--hlep'])).said).toContain("Unknown option '--hlep'; did you mean '--help'?\n")
  expect((await firebreak(['keys', '--zzzzzz'])).said).toMatch(/^firebreak keys: Unknown option '--zzzzzz'\n/)
})

test('a message of several lines is shown as lines, set in so that none can pose as another', async () => {
  const failing = {
    ...{ name: 'fail', summary: '' },
    load: async () => ({ help: '', run: () => Promise.reject(new Error('first\nfirebreak: \u001b[31msecond\n')) }),
  }
  let said = ''
  const io = { env: {}, stderr: { write: (text: string) => (said += text) }, stdout: { write: () => {} } }
  expect(await runCommand([failing], ['fail'], io as unknown as CommandIo)).toBe(1)
  expect(said).toBe('firebreak fail: first\n  firebreak: \\x1b[31msecond\n')
})

test('a command that watches the signal ends by itself, and any other is stopped', async () => {
  const stopped = async (run: Command['run']) => {
    const ending = new AbortController()
    let said = ''
    const stderr = { write: (text: string) => (said += text) }
    const io = { env: {}, stderr, stdout: { write: () => {} }, signal: ending.signal } as unknown as CommandIo
    const begun = runCommand([{ name: 'wait', summary: '', load: async () => ({ help: '', run }) }], ['wait'], io)
    await new Promise((resolve) => setImmediate(resolve))
    ending.abort()
    return [await begun, said]
  }
  const forever = new Promise<number>(() => {})
  expect(await stopped(() => forever)).toEqual([1, 'firebreak wait: stopped before it was done\n'])
  const watching: Command['run'] = async (_, { signal }) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve))
    return 0
  }
  expect(await stopped(watching)).toEqual([0, ''])
})

test('of several hubs the first that can be reached is asked', async () => {
  const server = createHttpServer((_request, response) => response.end('{"keys":[]}'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  const gone = createServer()
  await new Promise<void>((resolve) => gone.listen(0, '127.0.0.1', resolve))
  const both = `http://127.0.0.1:${(gone.address() as { port: number }).port},${url}`
  await new Promise((resolve) => gone.close(resolve))
  expect(await firebreak(['keys'], { FIREBREAK_HUB: both })).toMatchObject({ code: 0, out: 'No keys.\n' })
  const other = await firebreak(['keys', '--hub', url.replace('http', 'https')])
  expect([other.code, other.said]).toEqual([
    1,
    expect.stringContaining('does not use TLS; write http:// if it is your hub'),
  ])
  server.close()
})

test('a port that is taken is named with the flag, or the variable, that chooses another', async () => {
  const taken = createServer()
  await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve))
  const { port } = taken.address() as { port: number }
  const byFlag = await firebreak(['hub', '--port', String(port)])
  expect(byFlag.said).toContain(`Port ${port} is in use. Choose another with --port.`)
  expect(byFlag.code).toBe(1)
  const byVariable = await firebreak(['hub'], { FIREBREAK_HUB_PORT: String(port) })
  expect(byVariable.said).toContain(`Port ${port} is in use. Choose another with --port or FIREBREAK_HUB_PORT.`)
  taken.close()
})

test.each([
  [['tpo'], {}, 2],
  [['help', 'tpo'], {}, 2],
  [['top', '--onse'], {}, 2],
  [['keys', '--state', 'burning'], {}, 2],
  [['keys', '--limit', 'many'], {}, 2],
  [['keys', '--hub', 'nonsense'], {}, 2],
  [['keys'], { FIREBREAK_HUB: 'hub-1:7070' }, 2],
  [['hub'], { FIREBREAK_HUB_PORT: 'many' }, 2],
  [['hub', '--port', 'many'], {}, 2],
  [['find', 'hot', '--top', 'many'], {}, 2],
  [['keys', '--hub', 'http://127.0.0.1:1'], {}, 1],
  [['find', 'big', '--url', 'redis://127.0.0.1:1'], {}, 1],
  [['help'], {}, 0],
  [['completion', 'bash'], {}, 0],
  [['completion', 'tcsh'], {}, 2],
] as [string[], Record<string, string>, number][])(
  'one law of exit codes: %j with %j ends with %i',
  async (words, env, code) => {
    expect((await firebreak(words, env)).code).toBe(code)
  },
)

test('the overview says what each exit code means', async () => {
  expect((await firebreak(['help'])).out).toMatch(/Exit codes: 0 .* 1 .* 2 .*3 /s)
})
