import { createServer } from 'node:http'
import { Writable } from 'node:stream'
import { plainLines } from '@firebreak/core'
import fc from 'fast-check'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { loadAll } from '../command/command.ts'
import { runCommand } from '../command/run-command.ts'
import { commands } from '../commands/index.ts'

/** Whatever a terminal obeys, but for ends of lines and tabs. */
const obeyed = /\r(?!\n)|[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u200e\u200f\u2028-\u202e\u2066-\u2069]/

/** What somebody put into every text that the hub gives back. */
let hostile = ''
const server = createServer((request, response) => {
  response.setHeader('content-type', 'application/json')
  if (request.url?.includes('fail')) response.statusCode = 500
  response.end(JSON.stringify(answer()))
})
let hub: string

beforeAll(async () => {
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  hub = `http://127.0.0.1:${(server.address() as { port: number }).port}`
  // All packages are behind them: what loading costs is not the test's.
  await loadAll(commands)
}, 300_000)
afterAll(() => server.close())

/** One body that has the fields of every answer: each command takes its own. */
function answer(): object {
  const text = hostile
  const one = { id: text, name: text, key: text, redisClusterId: text, serviceId: text, hostId: text, instanceId: text }
  const more = {
    agent: text,
    who: text,
    what: text,
    why: text,
    at: 1,
    cause: text,
    retry: text,
    text,
    kind: 'app',
    code: text,
  }
  const lists = {
    services: [text],
    clusters: [text],
    certificates: [text],
    tokens: [],
    watchers: [],
    keys: [text],
    levels: [],
  }
  const numbers = {
    createdAt: 1,
    lastSeenAt: 1,
    ratePerSecond: 1,
    lastUsedAt: 1,
    tableVersion: 1,
    clockOffsetMs: 1,
    seq: 1,
  }
  const record = {
    ...one,
    ...more,
    ...lists,
    ...numbers,
    state: text,
    createdBy: text,
    before: text,
    after: text,
    pattern: { kind: 'exact', keys: [text] },
  }
  const all = [record]
  return {
    ...record,
    message: text,
    hosts: all,
    barred: all,
    tokens: all,
    rules: all,
    jobs: all,
    entries: all,
    alarms: all,
    events: all,
    keys: all,
    head: null,
    kept: 1,
  }
}

/** Commands that show what a hub knows, with every form that they have. */
const shown: readonly (readonly string[])[] = [
  ['hosts'],
  ['hosts', 'barred'],
  ['hosts', 'bar', 'HOSTILE'],
  ['token', 'list'],
  ['token', 'revoke', 'HOSTILE'],
  ['audit'],
  ['audit', 'verify'],
  ['rules'],
  ['rules', 'show', 'HOSTILE'],
  ['rules', 'export'],
  ['prewarm', 'list'],
  ['keys'],
  ['export'],
  ['top', '--once', '--json'],
  ['HOSTILE'],
  ['hosts', '--HOSTILE'],
]

async function outputOf(words: readonly string[]): Promise<string> {
  let output = ''
  const stream = new Writable({
    write(chunk, _encoding, done) {
      output += chunk
      done()
    },
  })
  const io = {
    env: { FIREBREAK_HUB: hub, FIREBREAK_DEBUG: '1' },
    stdin: process.stdin,
    stdout: stream,
    stderr: stream,
    signal: new AbortController().signal,
  }
  await runCommand(commands, words, io)
  return output
}

test('no command writes what a terminal obeys, whatever the hub, its keys and its errors hold', async () => {
  hostile = 'x\u001b[2J\u009b31m\u0007\r\u202e\u0000\u007f"%'
  const wrong: string[] = []
  let telling = 0
  for (const words of shown) {
    const given = words.map((word) => word.replace('HOSTILE', hostile))
    for (const form of [[], ['--json'], ['--ndjson'], ['--csv']]) {
      const output = await outputOf([...given, ...form])
      if (obeyed.test(output))
        wrong.push(`${words.join(' ')} ${form.join('')}: ${JSON.stringify(output.match(obeyed))}`)
      if (/x\\(x1b|u001b)/.test(output)) telling++
    }
  }
  expect(wrong).toEqual([])
  // Otherwise nothing was shown that could have been wrong.
  expect(telling).toBeGreaterThan(20)
})

test('lines of any text hold nothing that a terminal obeys, and JSON stays the same value', () => {
  fc.assert(
    fc.property(fc.string({ unit: 'binary' }), (text) => {
      expect(plainLines(text)).not.toMatch(obeyed)
      expect(JSON.parse(plainLines(JSON.stringify(text)))).toBe(text)
    }),
  )
})
