import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { PassThrough } from 'node:stream'
import { type Hub, startHub } from '@firebreak/hub'
import { temporaryFolder } from '@firebreak/testkit'
import { commands, runCommand } from 'firebreak/cli'
import { afterAll, beforeAll, expect, test } from 'vitest'

let hub: Hub

beforeAll(async () => {
  const rule = { id: 'any', prefix: 'p', threshold: 10, windowMs: 1000, strategy: 'LocalCache' }
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
  expect(refused.code).toBe(1)
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
