import { execFileSync } from 'node:child_process'
import { readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { fileURLToPath } from 'node:url'
import { protect, unprotect } from '@firebreak/client'
import type { KeyView } from '@firebreak/core'
import { resolveHubConfig, startHub } from '@firebreak/hub'
import { startChild, temporaryFolder, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { Redis } from 'ioredis'
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
  await up.printed(/Ctrl-C stops everything/, 60_000)
  const [, url] = up.output().match(/protect\(new Redis\('(\S+)'\)/)!
  expect(up.output()).toContain(`Redis    ${url}`)
  // Another program may take or leave the port between the two looks; where nobody had it, it is ours.
  if (!wasTaken) expect([url, await isTaken(6379)]).toEqual([url, true])
  expect(up.output()).toContain(`hubs: ['${up.output().match(/Console {2}(\S+)/)![1]}']`)
  expect(up.output()).toContain('npx firebreak top')
  const find = startChild(process.execPath, [built, 'find', 'big', '--json'], options)
  expect([await find.exited, find.output()]).toEqual([0, expect.not.stringContaining('ECONNREFUSED')])
  const hub = up.output().match(/Console {2}(\S+)/)![1]!
  const advise = startChild(process.execPath, [built, 'find', 'advise'], options)
  expect([await advise.exited, advise.output()]).toEqual([0, expect.not.stringContaining('ECONNREFUSED')])
  const top = startChild(process.execPath, [built, 'top', '--once', '--json'], options)
  expect(await top.exited).toBe(0)
  expect(JSON.parse(top.output())).toMatchObject({ verdict: expect.any(String), sensors: { connected: 1 } })
  // The drill is ended as soon as it has begun: it must have chosen this hub and Redis, and leave neither clients nor rule.
  const drill = startChild(process.execPath, [built, 'drill', '--clients', '2'], options)
  const [, place] = await drill.printed(/2 clients on the Redis at (\S+; hub \S+)/, 60_000)
  expect(place).toBe(`${url}; hub ${hub}`)
  const clients = childrenOf(drill.pid)
  expect(clients.length).toBeGreaterThanOrEqual(2)
  drill.signal('SIGTERM')
  expect(await drill.exited).toBe(1)
  expect(drill.output()).toContain('stopped before its last round')
  expect(clients.filter(isRunning)).toEqual([])
  const { rules } = (await (await fetch(`${hub}/v1/rules`)).json()) as { rules: { id: string }[] }
  expect(rules.map(({ id }) => id)).toEqual(['any-key'])
  const { isOff } = (await (await fetch(`${hub}/v1/overview`)).json()) as { isOff: boolean }
  expect(isOff).toBe(false)
  // The proxy, the hub and a client that names no cluster mean one Redis by one name.
  const proxy = up.output().match(/Proxy {4}(redis:\S+)/)![1]!
  const [through, direct] = [new Redis(proxy), protect(new Redis(url!), { hubs: [hub], serviceId: 'shop' })]
  await waitFor(
    async () => {
      await Promise.all([through.get('one'), direct.get('one')])
      const { keys } = (await (await fetch(`${hub}/v1/keys`)).json()) as { keys: KeyView[] }
      const ones = keys.filter(({ key }) => key === 'one')
      return ones.some(({ services }) => services?.includes('proxy') && services.includes('shop'))
    },
    { timeoutMs: 20_000, what: 'proxy and client to count one key together' },
  )
  through.disconnect()
  unprotect(direct)
  direct.disconnect()
  // Another one in another folder does not find the usual port, whoever has it, and says why it has another.
  const holder = createServer()
  await new Promise<void>((resolve) => holder.once('error', () => resolve()).listen(7070, '127.0.0.1', resolve))
  const second = startChild(process.execPath, [built, 'up'], { cwd: temporaryFolder('first-hour-2'), env })
  await second.printed(/Ctrl-C stops everything/, 60_000)
  expect(second.output()).toMatch(/Ports? 7070.* taken, perhaps by another Firebreak/)
  await second.stop()
  holder.close()
  await up.stop()
}, 120_000)

/** The processes that a process has started and that still run. */
function childrenOf(pid: number): number[] {
  return readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number)
}

function isRunning(pid: number): boolean {
  try {
    process.kill(pid, 0)
    return true
  } catch {
    return false
  }
}

test('a hub that wants a token says which variable gives it, and one with a private authority what is wrong', async () => {
  const folder = temporaryFolder('first-hour-hub')
  const file = (name: string, text: string) => {
    writeFileSync(join(folder, name), text, { mode: 0o600 })
    return join(folder, name)
  }
  const tokensFile = file('tokens.yaml', 'people:\n  - { name: ops, token: 8fA2kQ9zLm4xW7bC1dE6, role: admin }\n')
  const [key, certificate] = [join(folder, 'key.pem'), join(folder, 'cert.pem')]
  const subject = ['-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1']
  const curve = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '1']
  execFileSync('openssl', ['req', '-x509', ...curve, '-keyout', key, '-out', certificate, ...subject], {
    stdio: 'ignore',
  })
  const hub = await startHub({
    logLevel: 'fatal',
    ...resolveHubConfig({ flags: { 'tokens-file': tokensFile }, env: {} }).options,
    port: 0,
  })
  const tls = resolveHubConfig({ flags: { 'tls-cert-file': certificate, 'tls-key-file': key }, env: {} }).options
  const encrypted = await startHub({ ...tls, logLevel: 'fatal', port: 0 })
  expect(await said('keys', '--hub', hub.url)).toMatch(/the hub replied: .*FIREBREAK_TOKEN or FIREBREAK_TOKEN_FILE\n$/)
  expect(await said('keys', '--hub', encrypted.url)).toMatch(
    /certificate of the hub at https\S+ is not trusted: self-signed certificate \(DEPTH_ZERO_SELF_SIGNED_CERT\); .*NODE_EXTRA_CA_CERTS/,
  )
  await hub.close()
  await encrypted.close()
})

/** What a command that fails says. */
async function said(...words: string[]): Promise<string> {
  const stderr = new PassThrough()
  const signal = new AbortController().signal
  const io = { env: {}, stdin: process.stdin, stdout: new PassThrough(), stderr, signal }
  expect(await runCommand(commands, words, io)).toBe(1)
  return String(stderr.read() ?? '')
}

// As npm writes it, which depends on its version.
test.each(['firebreak', "'firebreak'"])(
  'SIGTERM to npx, which passes it on to a shell alone, ends %s',
  async (script) => {
    const data = temporaryFolder('npx-orphan')
    const env = { ...process.env, npm_lifecycle_script: script }
    const shell = startChild(
      'sh',
      ['-c', `"${process.execPath}" "${built}" up --port 0 --proxy-port 0 --data "${data}"; true`],
      { env },
    )
    const [, console] = await shell.printed(/Console {2}(\S+)/, 60_000)
    shell.signal('SIGTERM')
    const isUp = () =>
      fetch(`${console}/livez`).then(
        () => true,
        () => false,
      )
    await waitFor(async () => !(await isUp()), { timeoutMs: 20_000, what: 'the hub to end with the shell of npx' })
  },
)

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
