import { createServer } from 'node:net'
import { version } from '@firebreak/core'
import { expect, test } from 'vitest'
import { commands } from '../commands/index.ts'
import type { CommandIo } from './command.ts'
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
  expect(said).toContain('there is no command "prxy"; did you mean "proxy"?')
  expect((await firebreak(['help', 'proxy'])).out).toContain('--upstream')
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
