import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { freePort, startChild } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const built = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url))

test('token list ends with a message while the store is away', async () => {
  const store = `redis://127.0.0.1:${await freePort()}`
  const list = startChild(process.execPath, [built, 'token', 'list', '--store-url', store])
  expect([await list.exited, list.output()]).toEqual([1, expect.stringMatching(/firebreak token: .*not connected/)])
}, 60_000)

test('SIGTERM ends a command that waits for an answer', async () => {
  let wasAsked = () => {}
  const asked = new Promise<void>((resolve) => {
    wasAsked = resolve
  })
  // Takes the request and never answers.
  const silent = createServer((socket) => socket.once('data', wasAsked).on('error', () => {}))
  await new Promise<void>((resolve) => silent.listen(0, '127.0.0.1', resolve))
  const url = `http://127.0.0.1:${(silent.address() as { port: number }).port}`
  const list = startChild(process.execPath, [built, 'token', 'list', '--hub', url])
  await asked
  list.signal('SIGTERM')
  expect([await list.exited, list.output()]).toEqual([1, 'firebreak token: stopped before it was done\n'])
  silent.close()
}, 60_000)
