import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type Hub, startHub } from '@firebreak/hub'
import { freePort, temporaryFolder, waitFor } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { afterAll, beforeAll, expect, test } from 'vitest'

let hub: Hub

beforeAll(async () => {
  // Hot for as long as the tests take.
  const rule = { id: 'any', prefix: 'p', threshold: 10, windowMs: 120_000, strategy: 'LocalCache' }
  hub = await startHub({ initialRules: [rule], logLevel: 'fatal' })
  const body = `# ${Date.now()},${Date.now()},shop,host-1\n# main\np1:500,q:3\n`
  await fetch(`${hub.url}/v1/reports`, { method: 'POST', headers: { 'content-type': 'text/plain' }, body })
})
afterAll(() => hub.close())

async function run(...words: string[]): Promise<{ code: number; out: string; err: string }> {
  const stdout = new PassThrough()
  const stderr = new PassThrough()
  const env = { FIREBREAK_HUB: hub.url }
  const code = await runCommand(commands, words, {
    env,
    stdin: process.stdin,
    stdout,
    stderr,
    signal: new AbortController().signal,
  })
  return { code, out: String(stdout.read() ?? ''), err: String(stderr.read() ?? '') }
}

test('keys, hosts and top show what was reported', async () => {
  expect((await run('keys')).out).toMatch(/p1 .*hot/)
  expect(JSON.parse((await run('keys', '--state', 'hot', '--json')).out)).toMatchObject([{ key: 'p1', state: 'hot' }])
  expect((await run('keys', '--csv')).out.split('\n')[0]).toContain('key,')
  expect((await run('hosts')).code).toBe(0)
  expect((await run('top', '--once')).out).toContain('p1')
})

test('top is sorted and filtered by flags, and refuses an order that it does not know', async () => {
  expect((await run('top', '--once', '--filter', 'nothing-like-it')).out).not.toContain('p1')
  expect((await run('top', '--once', '--sort', 'name')).out).toContain('KEY↓')
  expect(await run('top', '--sort', 'colour')).toMatchObject({ code: 2, err: expect.stringContaining('rate, share') })
})

test('at a terminal a key is chosen, acted on and let go, and q ends', async () => {
  const raw: boolean[] = []
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode: (isRaw: boolean) => raw.push(isRaw) })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 120, rows: 30 })
  let screen = ''
  let all = ''
  stdout.on('data', (bytes) => (all += screen = String(bytes)))
  const ended = runCommand(commands, ['top', '--interval', '50', '--filter', 'p1'], {
    env: { FIREBREAK_HUB: hub.url },
    stdin: stdin as unknown as NodeJS.ReadStream,
    stdout,
    stderr: new PassThrough(),
    signal: new AbortController().signal,
  })
  await waitFor(() => screen.includes('p1'))
  stdin.write('j')
  await waitFor(() => screen.includes('> '))
  stdin.write('\r')
  await waitFor(() => screen.includes('last minute'))
  stdin.write('\u001b')
  await waitFor(() => !screen.includes('last minute'))
  const rules = () => hub.core.rules().rules.map(({ id }) => id)
  const auditOf = async () =>
    (await hub.core.store.audit(100, 0)).map(({ what }) => what).filter((what) => what.includes('rule key:'))
  stdin.write('c')
  await waitFor(() => screen.includes('cache p1 for ten minutes? y/n'))
  stdin.write('y')
  await waitFor(() => rules().some((id) => id.startsWith('key:')))
  await waitFor(() => screen.includes('in force for ten minutes'))
  stdin.write('uy')
  await waitFor(() => !rules().some((id) => id.startsWith('key:')))
  stdin.write('dy')
  await waitFor(() => screen.includes('copy: in force for ten minutes'))
  // Faster than the hub answers: each waits for the one before.
  stdin.write('uycyuydyuy')
  await waitFor(async () => (await auditOf()).length === 8)
  expect((await auditOf()).map((what) => what.split(' ')[0])).toEqual([
    ...['delete', 'add', 'delete', 'add', 'delete', 'add', 'delete', 'add'],
  ])
  expect(rules().some((id) => id.startsWith('key:'))).toBe(false)
  stdin.write('q')
  expect([await ended, raw]).toEqual([0, [true, false]])
  // A screen of its own, drawn over without clearing, and the terminal as it was.
  expect(all.startsWith('\u001b[?1049h')).toBe(true)
  expect(all.split('\u001b[2J')).toHaveLength(2)
  expect(screen).toBe('\u001b[?25h\u001b[?1049l')
})

test('at a terminal top stays while the hub is away, says so and since when, and goes on when it is back', async () => {
  const other = await startHub({ logLevel: 'fatal' })
  const port = Number(new URL(other.url).port)
  const stdin = Object.assign(new PassThrough(), { isTTY: true, setRawMode() {} })
  const stdout = Object.assign(new PassThrough(), { isTTY: true, columns: 160, rows: 30 })
  let screen = ''
  stdout.on('data', (bytes) => (screen = String(bytes)))
  const io = { stdin: stdin as unknown as NodeJS.ReadStream, stdout, stderr: new PassThrough() }
  const signal = new AbortController().signal
  const ended = runCommand(commands, ['top', '--interval', '50'], { env: { FIREBREAK_HUB: other.url }, ...io, signal })
  await waitFor(() => screen.includes('No sensor is reporting'))
  await other.close()
  await waitFor(() => /Unknown: figures of \d\d:\d\d:\d\d, trying again; no hub answers/.test(screen))
  expect(screen).not.toContain('No sensor is reporting')
  const again = await startHub({ port, logLevel: 'fatal' })
  await waitFor(() => screen.includes('No sensor is reporting'))
  stdin.write('q')
  expect(await ended).toBe(0)
  await again.close()
  // Without a hub from the start there is nothing to show.
  const stderr = new PassThrough()
  const code = await runCommand(commands, ['top'], { env: { FIREBREAK_HUB: other.url }, ...io, stderr, signal })
  expect([code, String(stderr.read())]).toEqual([1, expect.stringContaining('no hub answers')])
})

test('report says what was hot today, and refuses a day that is none', async () => {
  const { out } = await run('report')
  expect(out).toMatch(/^day \d{4}-\d\d-\d\d, \d+ % of the period recorded\n1 key was hot, once; /)
  expect(out).toMatch(/p1 +main /)
  expect(JSON.parse((await run('report', '--week', '--json')).out)).toMatchObject({ by: 'week', keys: [{ key: 'p1' }] })
  expect((await run('report', '--csv')).out.split('\n')[0]).toContain('key,cluster,hot')
  expect((await run('report', '--on', 'yesterday')).code).toBe(2)
})

test('rules are listed, applied from a file, shown and removed', async () => {
  const file = join(temporaryFolder('cli'), 'rules.yaml')
  writeFileSync(file, '- {id: stock, suffix: ":stock", threshold: 50, windowMs: 1000, strategy: Observe}\n')
  expect((await run('rules', 'apply', file)).out).toContain('rule stock is applied')
  expect((await run('rules')).out).toMatch(/stock +on +\*:stock/)
  expect(JSON.parse((await run('rules', 'show', 'stock')).out)).toMatchObject({ id: 'stock' })
  expect((await run('rules', 'remove', 'stock')).code).toBe(0)
  expect((await run('rules', 'show', 'stock')).code).toBe(1)
})

test('a broken rule is refused with the hub’s sentence, wrong usage with exit code 2', async () => {
  const file = join(temporaryFolder('cli'), 'rules.json')
  writeFileSync(file, JSON.stringify({ id: 'x', prefix: 'x', treshold: 5, windowMs: 1000, strategy: 'LocalCache' }))
  const refused = await run('rules', 'apply', file)
  expect(refused.code).toBe(2)
  expect(refused.err).toMatch(/treshold.*did you mean.*threshold/)
  expect(await run('rules', 'aply')).toMatchObject({
    code: 2,
    err: expect.stringContaining('did you mean "rules apply"'),
  })
  expect(await run('kys')).toMatchObject({ code: 2, err: expect.stringContaining('did you mean "keys"') })
  expect((await run('top', '--interval', '1')).code).toBe(2)
})

test('the switch and the export', async () => {
  expect((await run('off')).out).toContain('Off')
  expect(JSON.parse((await run('export')).out)).toMatchObject({
    rules: { rules: [{ id: 'any' }] },
    audit: { entries: expect.any(Array) },
  })
  expect((await run('on')).out).toContain('On')
})

test('off and on without a hub say what does work', async () => {
  const gone = `http://127.0.0.1:${await freePort()}`
  const off = await run('off', '--hub', gone)
  expect(off.code).toBe(1)
  expect(off.err).toContain(`firebreak off: no hub answers at ${gone}: nothing was switched.\n`)
  expect(off.err).toContain('set FIREBREAK=off in the environment of an application or a proxy and restart it')
  expect(off.err).not.toContain('firebreak up')
  expect((await run('on', '--hub', gone)).err).toContain('Otherwise run this again when a hub is back.')
  const both = await run('off', '--hub', `${gone},${gone}`)
  expect([both.code, both.out]).toEqual([1, expect.stringContaining('set FIREBREAK=off')])
  expect(both.out).not.toContain('firebreak up')
})

test('a hub that is not there is said with what to do', async () => {
  const { code, err } = await run('keys', '--hub', 'http://127.0.0.1:1')
  expect(code).toBe(1)
  expect(err).toMatch(/no hub answers at http:\/\/127\.0\.0\.1:1; start one with "firebreak up"/)
})

test('every command has help with examples in it', async () => {
  for (const command of commands) {
    const { help } = await command.load()
    expect(help, command.name).toContain(`firebreak ${command.name}`)
    expect((await run('help', command.name)).out).toBe(help)
  }
})
