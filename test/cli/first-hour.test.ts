import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { startChild, temporaryFolder, waitFor } from '@firebreak/testkit'
import { expect, test } from 'vitest'

const built = fileURLToPath(new URL('../../packages/cli/dist/main.js', import.meta.url))
const runner = fileURLToPath(new URL('../../scripts/run.mjs', import.meta.url))

/** Whether somebody listens there. */
async function isTaken(port: number): Promise<boolean> {
  const server = createServer()
  const isFree = await new Promise<boolean>((resolve) => {
    server.once('error', () => resolve(false)).listen(port, '127.0.0.1', () => resolve(true))
  })
  server.close()
  return !isFree
}

test('up prints a snippet with the addresses that are real, and find sees its Redis by itself', async () => {
  const { REDIS_URL: _, npm_package_name: __, ...env } = process.env
  const options = { cwd: temporaryFolder('first-hour'), env }
  const wasTaken = await isTaken(6379)
  const up = startChild(process.execPath, [built, 'up', '--port', '0', '--proxy-port', '0'], options)
  await up.printed(/Ctrl-C ends it all/, 60_000)
  const [, url] = up.output().match(/protect\(new Redis\('(\S+)'\)/)!
  expect(up.output()).toContain(`Redis    ${url}`)
  // Another program may take or leave the port between the two looks; where nobody had it, it is ours.
  if (!wasTaken) expect([url, await isTaken(6379)]).toEqual([url, true])
  expect(up.output()).toContain(`hubs: ['${up.output().match(/Console {2}(\S+)/)![1]}']`)
  expect(up.output()).toContain('npx firebreak top')
  const find = startChild(process.execPath, [built, 'find', 'big', '--json'], options)
  expect([await find.exited, find.output()]).toEqual([0, expect.not.stringContaining('ECONNREFUSED')])
  await up.stop()
})

test('whoever ends the shell that npm runs a script in ends the program too', async () => {
  const data = temporaryFolder('orphan')
  const command = `"${process.execPath}" "${runner}" firebreak up --port 0 --proxy-port 0 --data "${data}"; true`
  const shell = startChild('sh', ['-c', command])
  const [, console] = await shell.printed(/Console {2}(\S+)/, 120_000)
  expect((await fetch(`${console}/livez`)).status).toBe(200)
  shell.signal('SIGKILL')
  await waitFor(
    async () =>
      !(await fetch(`${console}/livez`).then(
        () => true,
        () => false,
      )),
    {
      timeoutMs: 20_000,
      what: 'the hub to end with the shell that was killed',
    },
  )
})
