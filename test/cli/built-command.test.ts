import { fileURLToPath } from 'node:url'
import { redisCli, startChild, temporaryFolder } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const built = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url))

/** What people install is what `npm run build` makes, not the sources: it must find its page, its scripts, its threads. */
test('the command as it is published serves its console, and its proxy answers from two threads', async () => {
  const up = startChild(process.execPath, [built, 'up', '--port', '0', '--proxy-port', '0', '--data', 'data'], {
    cwd: temporaryFolder('built'),
  })
  const [, console] = await up.printed(/Console {2}(\S+)/, 60_000)
  const [, redis] = await up.printed(/Proxy {4}(\S+)/)
  const page = await (await fetch(`${console}/`)).text()
  expect(page).toContain('id="page"')
  const script = page.match(/src="\.\/(assets\/[^"]+\.js)"/)![1]
  expect((await fetch(`${console}/${script}`)).status).toBe(200)
  const threads = startChild(process.execPath, [built, 'proxy', '--upstream', redis!, '--port', '0', '--workers', '2'])
  const [, port] = await threads.printed(/listens on \S+:(\d+)/, 60_000)
  expect(await redisCli(Number(port), 'SET', 'k', 'v')).toBe('OK')
  expect(await redisCli(Number(port), 'GET', 'k')).toBe('v')
  await threads.stop()
  await up.stop()
})

test('a second one in the same folder says that there is one, and leaves its traces alone', async () => {
  const options = { cwd: temporaryFolder('twice'), env: { ...process.env, FIREBREAK_DATA: 'data' } }
  const args = [built, 'up', '--port', '0', '--proxy-port', '0']
  const up = startChild(process.execPath, args, options)
  await up.printed(/Firebreak is up\./, 60_000)
  const again = startChild(process.execPath, args, options)
  await again.printed(/Firebreak is up in data already \(http:\S+, process \d+\); stop it, or .*--data/, 60_000)
  const hosts = startChild(process.execPath, [built, 'hosts'], options)
  await hosts.printed(/proxy/, 60_000)
  await up.stop()
})
